// Three calls with the client that openapi-typescript and openapi-fetch make of the published document.
import createClient from "openapi-fetch";
import type { paths } from "./document.js";

declare const process: { env: Record<string, string> };
const { BASE_URL, API_KEY } = process.env;
const client = createClient<paths>({ baseUrl: BASE_URL, headers: { "x-api-key": API_KEY } });

const owner = { email: "ada@example.com", firstName: "Ada", lastName: "Lovelace" };
const made = await client.POST("/account/tenant", { body: { name: "TypeScript", owner, muteNotifications: true } });
if (made.data === undefined) throw new Error(`no workspace: ${JSON.stringify(made.error)}`);
const { id } = made.data;

const list = await client.GET("/account/tenant");
if (!list.data?.some((tenant) => tenant.id === id && tenant.name === "TypeScript")) throw new Error("it is not in the list");

const path = { tenant_id: "tenant_00000000000000000000000007" };
const missing = await client.GET("/account/tenant/byId/{tenant_id}", { params: { path } });
if (missing.error?.statusCode !== 404 || missing.error.error !== "NOT_FOUND") throw new Error("an error is not typed");
