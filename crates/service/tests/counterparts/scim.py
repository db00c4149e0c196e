"""Runs scim2-tester against SCIM_URL with the header SCIM_AUTHORIZATION. Its generator of values is told what no schema
says: a user's name is an address, which roles exist, and that the only one is the primary one. Prints `{ passed, wrong }`."""

import json
import os
import random
import sys
import uuid

import httpx2
from scim2_client.engines.httpx2 import SyncSCIMClient
from scim2_tester import Status, check_server, filling

plain = filling.generate_random_value


def known(context, path, **rest):
    value = plain(context, path, **rest)
    binding = path.resolve()
    if value is None or binding is None or binding.target_model is None:
        return value
    name = (binding.target_model.__name__, binding.target_field_name)
    if name == ("User", "user_name"):
        return f"{uuid.uuid4()}@example.com"
    if name == ("Roles", "value"):
        return random.choice(["MEMBER", "ADMIN"])
    if name == ("Roles", "primary"):
        return True
    return value


for module in ["filling", "checkers.patch_add", "checkers.patch_replace"]:
    sys.modules[f"scim2_tester.{module}"].generate_random_value = known
random.seed(7)

headers = {"Authorization": os.environ["SCIM_AUTHORIZATION"]}
client = SyncSCIMClient(httpx2.Client(base_url=os.environ["SCIM_URL"], headers=headers))
results = check_server(client)
wrong = [result for result in results if result.status in (Status.ERROR, Status.CRITICAL)]
passed = sum(result.status == Status.SUCCESS for result in results)
told = [f"{result.title} {result.resource_type or ''}: {result.reason} {result.data!r:.800}" for result in wrong]
print(json.dumps({"passed": passed, "wrong": told}))
