"""Fifteen secrets as foreign systems send them, each with the same canary."""

import base64
import json
from typing import Final

CANARY: Final = "c4n4ryS3cretXYZ0123456789"


def _jwt() -> str:
    parts = ({"alg": "HS256", "typ": "JWT"}, {"sub": CANARY})
    return ".".join(
        [*(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts), CANARY]
    )


PLANTED: Final = (
    f"Authorization: Bearer {CANARY}",
    f"bearer {CANARY}",
    f"Authorization: Digest username=u, response={CANARY}",
    f"Authorization: Basic {CANARY}",
    _jwt(),
    f"X-Api-Key: {CANARY}",
    f"api_key={CANARY}",
    f"sk_live_{CANARY}",
    f"ghp_{CANARY}",
    f'{{"password": "{CANARY}"}}',
    f'{{"auth": {{"accessToken": "{CANARY}"}}}}',
    f"client_secret={CANARY}",
    f"mqtt://user:{CANARY}@broker/x",
    f"Cookie: session={CANARY}",
    f"-----BEGIN PRIVATE KEY-----\n{CANARY}\n-----END PRIVATE KEY-----",
)
