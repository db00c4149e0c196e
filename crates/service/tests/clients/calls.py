"""Three calls with the client that openapi-python-client makes of the published document."""

import os

from tenantry_client import AuthenticatedClient
from tenantry_client.api.workspaces import get_account_tenant, get_account_tenant_by_id_by_tenant_id, post_account_tenant
from tenantry_client.models import Error, NewOwner, NewTenant

key = os.environ["API_KEY"]
with AuthenticatedClient(os.environ["BASE_URL"], key, prefix="", auth_header_name="x-api-key") as client:
    owner = NewOwner(email="grace@example.com", first_name="Grace", last_name="Hopper")
    body = NewTenant(name="Python", owner=owner, mute_notifications=True)
    made = post_account_tenant.sync(client=client, body=body)
    listed = get_account_tenant.sync(client=client)
    assert any(tenant.id == made.id and tenant.name == "Python" for tenant in listed), listed
    missing = get_account_tenant_by_id_by_tenant_id.sync("tenant_00000000000000000000000007", client=client)
    assert isinstance(missing, Error) and missing.error == "NOT_FOUND", missing
