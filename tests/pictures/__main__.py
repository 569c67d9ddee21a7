"""Write the pictures of the documentation: python -m tests.pictures."""

from tests.pictures.drawn import FOLDER, pictures

for name, picture in pictures().items():
    (FOLDER / name).write_text(picture, encoding="utf-8")
