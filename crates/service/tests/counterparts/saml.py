"""pysaml2, which leaves signatures and encryption to xmlsec1, as the identity provider of a workspace. It reads the service's metadata as it is,
verifies each request and answers in every form that it knows. Nobody tells it which ciphers to use, so that is put in from outside.

Prints `{ accepted: [{ how, code }], refused: [{ how, status }] }`."""

import functools
import json
import os
import subprocess
import tempfile
import urllib.parse
from html.parser import HTMLParser

import httpx2
import saml2.entity
import saml2.sigver
from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT
from saml2.config import IdPConfig
from saml2.metadata import create_metadata_string
from saml2.saml import NAMEID_FORMAT_EMAILADDRESS, NAME_FORMAT_URI, NameID
from saml2.server import Server
from saml2.sigver import get_xmlsec_binary
from saml2.xmldsig import DIGEST_SHA256, DIGEST_SHA512, SIG_RSA_SHA256, SIG_RSA_SHA512

BASE_URL, EMAIL = os.environ["BASE_URL"], os.environ["EMAIL"]
workspaces = iter(os.environ["WORKSPACES"].split())
SSO = "https://idp.example/sso"
GCM, CBC = "http://www.w3.org/2009/xmlenc11#aes256-gcm", "http://www.w3.org/2001/04/xmlenc#aes256-cbc"
DES = "http://www.w3.org/2001/04/xmlenc#tripledes-cbc"
folder = tempfile.TemporaryDirectory()
key = httpx2.Client(base_url=BASE_URL, headers={"x-api-key": os.environ["API_KEY"]})


def file(name):
    return os.path.join(folder.name, name)


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def call(method, path, body):
    answer = key.request(method, path, json=body)
    assert answer.is_success, f"{method} {path} answered {answer.status_code}: {answer.text}"
    return answer.json()


def provider(metadata):
    """An identity provider that knows these service providers. It wants requests to be signed."""
    sso = [(SSO, BINDING_HTTP_REDIRECT), (SSO, BINDING_HTTP_POST)]
    policy = {"default": {"lifetime": {"minutes": 5}, "attribute_restrictions": None, "name_form": NAME_FORMAT_URI}}
    idp = {"endpoints": {"single_sign_on_service": sso}, "want_authn_requests_signed": True, "policy": policy}
    known = {
        "entityid": "https://idp.example/metadata", "xmlsec_binary": get_xmlsec_binary(), "service": {"idp": idp},
        "key_file": file("idp.key"), "cert_file": file("idp.pem"), "metadata": {"inline": metadata},
    }
    return IdPConfig().load(known)


class Form(HTMLParser):
    """The hidden fields of a page's form."""

    def __init__(self, page):
        super().__init__()
        self.fields = {}
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        named = dict(attributes)
        if tag == "input" and "name" in named:
            self.fields[named["name"]] = named.get("value", "")


class Connection:
    """A connection of the service to this provider, with a key of the given kind that signs its requests."""

    def __init__(self, method, algorithm, kind):
        openssl("genpkey", "-out", file("sp.key"), *kind)
        with open(file("sp.key"), encoding="ascii") as private:
            signing = {"signedRequest": True, "signedRequestAlgorithm": algorithm, "privateKey": private.read()}
        read = call("POST", "/account/federation/metadata", {"metadataXml": create_metadata_string(None, provider([])).decode()})
        body = {**read, **signing, "name": "Acme", "requestMethod": method}
        self.id = call("POST", "/account/federation/connection", body)["id"]
        call("PUT", f"/account/tenant/{next(workspaces)}", {"federationConnection": self.id})
        metadata = httpx2.get(f"{BASE_URL}/auth/federation/saml/{self.id}/metadata").text
        self.idp = Server(config=provider([metadata]))

    def request(self, browser):
        """Sends the browser off; the request as the provider understands it, and what is to come back with the answer."""
        page = browser.get(f"{os.environ['AUTHORIZE']}&federation_connection={self.id}")
        while page.is_redirect and not page.headers["location"].startswith(SSO):
            page = browser.get(urllib.parse.urljoin(BASE_URL, page.headers["location"]))
        if page.is_redirect:
            sent = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(page.headers["location"]).query))
            named = {"relay_state": sent["RelayState"], "sigalg": sent["SigAlg"], "signature": sent["Signature"]}
            asked = self.idp.parse_authn_request(sent["SAMLRequest"], BINDING_HTTP_REDIRECT, **named)
        else:
            sent = Form(page.text).fields
            asked = self.idp.parse_authn_request(sent["SAMLRequest"], BINDING_HTTP_POST)
        return asked.message, sent["RelayState"]

    def answer(self, cipher=None, **how):
        """A whole sign-in, up to the app or to the page that refuses it."""
        browser = httpx2.Client(base_url=BASE_URL)
        asked, relay_state = self.request(browser)
        if cipher:
            self.use(cipher)
        to = self.idp.response_args(asked, [BINDING_HTTP_POST])
        person = {"mail": [EMAIL], "givenName": ["Grace"], "sn": ["Hopper"]}
        response = self.idp.create_authn_response(
            person, in_response_to=to["in_response_to"], destination=to["destination"], sp_entity_id=to["sp_entity_id"],
            name_id=NameID(format=NAMEID_FORMAT_EMAILADDRESS, text=EMAIL), userid=EMAIL,
            authn={"class_ref": "urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport", "authn_auth": SSO},
            **{"sign_alg": SIG_RSA_SHA256, "digest_alg": DIGEST_SHA256, "encrypt_assertion": bool(cipher),
               "encrypt_assertion_self_contained": True, "sign_response": False, "sign_assertion": False, **how},
        )
        posted = self.idp.apply_binding(BINDING_HTTP_POST, str(response), to["destination"], relay_state, response=True)
        page = browser.post(posted["url"], data=Form(posted["data"]).fields)
        while page.is_redirect and page.headers["location"].startswith(("/", BASE_URL)):
            page = browser.get(urllib.parse.urljoin(BASE_URL, page.headers["location"]))
        back = urllib.parse.parse_qs(urllib.parse.urlsplit(page.headers.get("location", "")).query)
        return back.get("code", [None])[0], page.status_code

    def use(self, cipher):
        session_key = {GCM: "aes-256", CBC: "aes-256", DES: "des-192"}[cipher]
        saml2.entity.pre_encryption_part = functools.partial(saml2.sigver.pre_encryption_part, msg_enc=cipher)
        plain = saml2.sigver.SecurityContext.encrypt_assertion
        self.idp.sec.encrypt_assertion = functools.partial(plain, self.idp.sec, key_type=session_key)


openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", file("idp.key"), "-out", file("idp.pem"), "-subj", "/CN=idp.example")
RSA, EC = ["-algorithm", "RSA"], ["-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"]
redirected, posted = Connection("GET", "sha256", RSA), Connection("POST", "sha512", RSA)
posted_ec = Connection("POST", "sha256", EC)
both = {"sign_response": True, "sign_assertion": True}
SHA512 = {"sign_alg": SIG_RSA_SHA512, "digest_alg": DIGEST_SHA512}
good = [
    ("redirect, assertion signed", redirected, {"sign_assertion": True}),
    ("redirect, response signed", redirected, {"sign_response": True}),
    ("redirect, both signed", redirected, both),
    ("post, both signed with SHA-512", posted, {**both, **SHA512}),
    ("post by an EC key, assertion signed", posted_ec, {"sign_assertion": True}),
    ("GCM, assertion signed", redirected, {"sign_assertion": True, "cipher": GCM}),
    ("GCM, response signed", posted, {"sign_response": True, "cipher": GCM}),
    ("GCM, both signed", posted, {**both, "cipher": GCM}),
    ("CBC, both signed", redirected, {**both, "cipher": CBC}),
]
bad = [
    ("unsigned", redirected, {}),
    ("GCM, unsigned", redirected, {"cipher": GCM}),
    ("CBC, assertion signed", redirected, {"sign_assertion": True, "cipher": CBC}),
    ("3DES, both signed", redirected, {**both, "cipher": DES}),
]


def tried(attempts):
    for how, connection, options in attempts:
        code, status = connection.answer(**options)
        yield {"how": how, "code": code, "status": status}


print(json.dumps({"accepted": list(tried(good)), "refused": list(tried(bad))}))
