"""What botocore signs for the inputs in `INPUTS`, as JSON: an address to read an object from, and the form of an upload."""

import datetime
import json
import os
from unittest import mock

from botocore.config import Config
from botocore.session import get_session

given = json.loads(os.environ["INPUTS"])


def client():
    style = "path" if given["pathStyle"] else "virtual"
    return get_session().create_client(
        "s3",
        endpoint_url=given["endpoint"],
        region_name=given["region"],
        aws_access_key_id=given["key"],
        aws_secret_access_key=given["secret"],
        config=Config(signature_version="s3v4", s3={"addressing_style": style}),
    )


def read(at):
    parameters = {
        "Bucket": given["bucket"],
        "Key": at["key"],
        "ResponseContentDisposition": at["disposition"],
        "ResponseContentType": at["contentType"],
    }
    operation = "head_object" if at["head"] else "get_object"
    return client().generate_presigned_url(operation, Params=parameters, ExpiresIn=at["lasts"])


def form(at):
    fields = {"Content-Type": at["contentType"], "success_action_status": "204"}
    conditions = [{name: value} for name, value in fields.items()]
    conditions.append(["content-length-range", 0, at["maxBytes"]])
    return client().generate_presigned_post(given["bucket"], at["key"], fields, conditions, at["lasts"])


def at_the_time(date, make):
    now = datetime.datetime.strptime(date, "%Y%m%dT%H%M%SZ").replace(tzinfo=datetime.timezone.utc)
    with mock.patch("botocore.auth.get_current_datetime", lambda *_, **__: now):
        with mock.patch("botocore.signers.get_current_datetime", lambda *_, **__: now):
            return make()


made = {
    "read": [at_the_time(one["date"], lambda: read(one)) for one in given["read"]],
    "form": [at_the_time(one["date"], lambda: form(one)) for one in given["form"]],
}
print(json.dumps(made))
