"""Order one job and print its result, as a MES does.

pip install paho-mqtt
python first_order.py HOST PORT [USER PASSWORD]
"""

import json
import queue
import sys
import uuid
from pathlib import Path
from typing import Any

from paho.mqtt.client import Client, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

SCOPE, ANSWERS = "app/jobs/station-1", "app/jobs/answers/first-order"
METHOD = "org.opcfoundation.ISA95-JOBCONTROL_V2.{}.v2"
WORK_MASTER = "com.github.aschamberger.ISA95-JOBCONTROL_V2.config.workmaster.v1"
RECIPE_SCHEMA = "https://aschamberger.github.io/schemas/microdcs/sfc-recipe/v1.0.0/"

host, port, *login = sys.argv[1:]
subscribed, answers, events = queue.Queue(), queue.Queue(), queue.Queue()
client = Client(CallbackAPIVersion.VERSION2, "first-order", protocol=MQTTv5)
client.on_subscribe = lambda *arguments: subscribed.put(arguments)
client.on_message = lambda _client, _data, message: (answers if message.topic == ANSWERS else events).put(message)
if login:
    client.username_pw_set(*login)
client.connect(host, int(port))
client.loop_start()
client.subscribe([(ANSWERS, 1), (f"{SCOPE}/events", 1)])
subscribed.get(timeout=10)


def call(event_type: str, data: object, **extensions: str) -> dict[str, Any]:
    """Send a call each second until it is answered; a call with the same `id` is executed once."""
    call_id = str(uuid.uuid4())
    attributes = {"specversion": "1.0", "id": call_id, "source": "/first-order", "type": event_type}
    properties = Properties(PacketTypes.PUBLISH)
    properties.ContentType, properties.ResponseTopic = "application/json", ANSWERS
    properties.CorrelationData = call_id.encode()
    properties.UserProperty = [*attributes.items(), *extensions.items()]
    for _ in range(60):
        client.publish(f"{SCOPE}/commands", json.dumps(data), qos=1, properties=properties)
        try:
            while (answer := answers.get(timeout=1)).properties.CorrelationData != call_id.encode():
                pass
        except queue.Empty:
            continue
        print(event_type, answer.payload.decode() or "done")
        return json.loads(answer.payload or "{}")
    raise SystemExit(f"no answer to {event_type}: does the gateway run, and may it write to {ANSWERS}?")


recipe = json.loads(Path(__file__).with_name("recipe.json").read_text())
call(WORK_MASTER, {"ID": "WM-FIRST", "data": recipe, "dataschema": RECIPE_SCHEMA}, method="PUT")

job_id = f"ORDER-{uuid.uuid4().hex[:8]}"
parameters = [{"ID": "torque_spec", "Value": "85Nm"}]
order = {"JobOrderID": job_id, "WorkMasterID": [{"ID": "WM-FIRST"}], "JobOrderParameters": parameters}
call(METHOD.format("StoreAndStart"), {"JobOrder": order})

state = ""
while state not in {"Ended", "Aborted"}:
    event = json.loads(events.get(timeout=120).payload)
    if event.get("JobOrder", {}).get("JobOrderID") == job_id:
        state = event["JobState"][0]["StateText"]["Text"]
        print(job_id, state)

response = call(METHOD.format("RequestJobResponseByJobOrderID"), {"JobOrderID": job_id})["JobResponse"]
for result in response["JobResponseData"]:
    print("result", json.dumps(result))
call(METHOD.format("Clear"), {"JobOrderID": job_id})
