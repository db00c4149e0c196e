#!/usr/bin/env python3
"""Makes the corpus: good responses and attacks on them, signed and encrypted by xmlsec1, which shares no code with the crate.

    python3 make.py        needs lxml, xmlsec1 and openssl; overwrites the files beside it

Every file is a response to the request `_request` at 2026-01-15T10:00:00Z. Its name is followed in README.md by the step
that must refuse it.
"""

import base64, copy, os, pathlib, subprocess, tempfile
from lxml import etree

HERE = pathlib.Path(__file__).parent
SAML = "urn:oasis:names:tc:SAML:2.0:assertion"
SAMLP = "urn:oasis:names:tc:SAML:2.0:protocol"
DS = "http://www.w3.org/2000/09/xmldsig#"
XENC = "http://www.w3.org/2001/04/xmlenc#"
ACS = "https://login.example/auth/federation/saml/c1/acs"
ENTITY = "https://login.example/auth/federation/saml/c1/metadata"
IDP = "https://idp.example/metadata"
RSA256 = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
rows = []


def run(*command, **options):
    done = subprocess.run([str(part) for part in command], capture_output=True, **options)
    if done.returncode:
        raise SystemExit(f"{command}: {done.stderr.decode()}")
    return done.stdout


def key(name, *kind):
    pem, certificate = SECRETS / f"{name}.key", HERE / f"{name}.pem"
    run("openssl", "req", "-x509", "-newkey", *kind, "-nodes", "-keyout", pem, "-out", certificate,
        "-subj", f"/CN={name}.example", "-days", "36500")
    return pem


def assertion(**change):
    v = dict(id="_assertion", issuer=IDP, name="ann@acme.example", recipient=ACS, audience=ENTITY, request="_request",
             before="2026-01-15T09:59:00Z", after="2026-01-15T10:05:00Z", issued="2026-01-15T10:00:00Z", authn="2026-01-15T09:58:00Z",
             session="", cls="urn:oasis:names:tc:SAML:2.0:ac:classes:PasswordProtectedTransport", email="ann@acme.example", extra="",
             method="urn:oasis:names:tc:SAML:2.0:cm:bearer", version="2.0")
    v.update(change)
    return """<saml:Assertion xmlns:saml="%s" ID="{id}" Version="{version}" IssueInstant="{issued}"><saml:Issuer>{issuer}</saml:Issuer><saml:Subject><saml:NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress">{name}</saml:NameID><saml:SubjectConfirmation Method="{method}"><saml:SubjectConfirmationData NotOnOrAfter="{after}" Recipient="{recipient}" InResponseTo="{request}"/></saml:SubjectConfirmation></saml:Subject><saml:Conditions NotBefore="{before}" NotOnOrAfter="{after}"><saml:AudienceRestriction><saml:Audience>{audience}</saml:Audience></saml:AudienceRestriction></saml:Conditions>{extra}<saml:AuthnStatement AuthnInstant="{authn}"{session}><saml:AuthnContext><saml:AuthnContextClassRef>{cls}</saml:AuthnContextClassRef></saml:AuthnContext></saml:AuthnStatement><saml:AttributeStatement><saml:Attribute Name="email"><saml:AttributeValue xmlns:xs="http://www.w3.org/2001/XMLSchema" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="xs:string">{email}</saml:AttributeValue></saml:Attribute><saml:Attribute Name="givenName"><saml:AttributeValue>Ann</saml:AttributeValue></saml:Attribute><saml:Attribute Name="sn"><saml:AttributeValue>Lee</saml:AttributeValue></saml:Attribute></saml:AttributeStatement></saml:Assertion>""".replace("%s", SAML).format(**v)


def response(inner, **change):
    v = dict(id="_response", issuer=IDP, destination=f' Destination="{ACS}"', request=' InResponseTo="_request"', status="Success", head="")
    v.update(change)
    return """<samlp:Response xmlns:samlp="%s" xmlns:saml="%s" ID="{id}" Version="2.0" IssueInstant="2026-01-15T10:00:00Z"{destination}{request}><saml:Issuer>{issuer}</saml:Issuer>{head}<samlp:Status><samlp:StatusCode Value="urn:oasis:names:tc:SAML:2.0:status:{status}"/></samlp:Status>{inner}</samlp:Response>""".replace("%s", SAMLP, 1).replace("%s", SAML, 1).format(inner=inner, **v)


def template(owner, method=RSA256, digest=XENC + "sha256", uri=None, transforms=None, info="", canonical="http://www.w3.org/2001/10/xml-exc-c14n#", after="", references=1):
    transforms = transforms if transforms is not None else (
        f'<ds:Transform Algorithm="{DS}enveloped-signature"/><ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>')
    uri = f"#{owner}" if uri is None else uri
    reference = f'<ds:Reference URI="{uri}"><ds:Transforms>{transforms}</ds:Transforms><ds:DigestMethod Algorithm="{digest}"/><ds:DigestValue/></ds:Reference>'
    return f'<ds:Signature xmlns:ds="{DS}"><ds:SignedInfo><ds:CanonicalizationMethod Algorithm="{canonical}"/><ds:SignatureMethod Algorithm="{method}"/>{reference * references}</ds:SignedInfo><ds:SignatureValue/>{info}{after}</ds:Signature>'


def place(xml, owner, signature):
    """Puts a signature behind the issuer of the element with this ID."""
    start = xml.index(f'ID="{owner}"')
    at = xml.index("</saml:Issuer>", start) + len("</saml:Issuer>")
    return xml[:at] + signature + xml[at:]


def sign(xml, owner, key=None, hmac=None, **options):
    xml = place(xml, owner, template(owner, **options))
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, "in.xml"), pathlib.Path(folder, "out.xml")
        source.write_text(xml)
        using = ["--hmackey", hmac] if hmac else ["--privkey-pem", key or KEYS["idp"]]
        run("xmlsec1", "--sign", *using, "--id-attr:ID", f"{SAML}:Assertion", "--id-attr:ID", f"{SAMLP}:Response",
            "--node-xpath", f"//*[@ID='{owner}']/*[local-name()='Signature']", "--output", target, source)
        text = target.read_text()
    return text.split("?>", 1)[1].strip() if text.startswith("<?xml") else text.strip()


def sign_again(xml):
    """The identity provider's own signature over a SignedInfo that was changed: right in all but what it says."""
    document = etree.fromstring(xml.encode())
    signature = next(document.iter(f"{{{DS}}}Signature"))
    info = etree.tostring(child(signature, "SignedInfo"), method="c14n", exclusive=True)
    value = run("openssl", "dgst", "-sha256", "-sign", KEYS["idp"], input=info)
    child(signature, "SignatureValue").text = base64.b64encode(value).decode()
    return text(document)


def encrypt(plain, content, transport, extra=""):
    with tempfile.TemporaryDirectory() as folder:
        data, shape, out = (pathlib.Path(folder, name) for name in ("data", "template.xml", "out.xml"))
        data.write_text(plain)
        shape.write_text(
            f'<xenc:EncryptedData xmlns:xenc="{XENC}" Type="{XENC}Element"><xenc:EncryptionMethod Algorithm="{content}"/>'
            f'<ds:KeyInfo xmlns:ds="{DS}"><xenc:EncryptedKey><xenc:EncryptionMethod Algorithm="{transport}">{extra}</xenc:EncryptionMethod>'
            '<xenc:CipherData><xenc:CipherValue/></xenc:CipherData></xenc:EncryptedKey></ds:KeyInfo>'
            '<xenc:CipherData><xenc:CipherValue/></xenc:CipherData></xenc:EncryptedData>')
        session = "aes-256" if "256" in content else "aes-128"
        run("xmlsec1", "--encrypt", "--pubkey-cert-pem", HERE / "sp.pem", "--session-key", session, "--binary-data", data,
            "--output", out, shape)
        text = out.read_text()
    text = text.split("?>", 1)[1].strip() if text.startswith("<?xml") else text.strip()
    return f"<saml:EncryptedAssertion>{text}</saml:EncryptedAssertion>"


def keep(name, step, what, xml):
    (HERE / f"{name}.xml").write_text(xml)
    rows.append((name, step, what))


def tree(xml):
    return etree.fromstring(xml.encode())


def text(element):
    return etree.tostring(element).decode()


def child(element, name):
    return next(node for node in element if etree.QName(node).localname == name)


SECRETS = pathlib.Path(tempfile.mkdtemp())
KEYS = {"idp": key("idp", "rsa:2048"), "other": key("other", "rsa:2048"), "sp": key("sp", "rsa:2048"),
        "small": key("small", "rsa:1024"), "ec": key("ec", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
        "ec384": key("ec384", "ec", "-pkeyopt", "ec_paramgen_curve:P-384")}
(HERE / "sp.key").write_bytes(run("openssl", "pkcs8", "-topk8", "-nocrypt", "-in", KEYS["sp"]))

# -- good ones
A, R = assertion(), response(assertion())
signed_assertion = sign(R, "_assertion")
signed_response = sign(R, "_response")
keep("good-assertion-signed", "accepted", "the assertion is signed", signed_assertion)
keep("good-response-signed", "accepted", "the response is signed", signed_response)
keep("good-both-signed", "accepted", "both are signed, the assertion first", sign(signed_assertion, "_response"))
keep("good-ec-p256", "accepted", "ECDSA on P-256", sign(R, "_assertion", key=KEYS["ec"], method="http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"))
keep("good-ec-p384-sha512", "accepted", "ECDSA on P-384 with SHA-512", sign(R, "_assertion", key=KEYS["ec384"], method="http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha512", digest=XENC + "sha512"))
keep("good-rsa-sha384", "accepted", "RSA with SHA-384", sign(R, "_response", method="http://www.w3.org/2001/04/xmldsig-more#rsa-sha384", digest="http://www.w3.org/2001/04/xmldsig-more#sha384"))
keep("good-rsa-sha512", "accepted", "RSA with SHA-512", sign(R, "_assertion", method="http://www.w3.org/2001/04/xmldsig-more#rsa-sha512", digest=XENC + "sha512"))
prefixes = f'<ds:Transform Algorithm="{DS}enveloped-signature"/><ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"><ec:InclusiveNamespaces xmlns:ec="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList="xs samlp #default"/></ds:Transform>'
keep("good-prefix-list", "accepted", "inclusive namespaces", sign(R, "_assertion", transforms=prefixes))
pretty = R.replace("><", ">\n  <")
keep("good-pretty", "accepted", "with white space between the elements and character references", sign(pretty.replace("Ann<", "&#65;nn<"), "_assertion"))
bare = response(A, destination="", request="")
keep("good-bare-response", "accepted", "the unsigned response says neither destination nor request", sign(bare, "_assertion"))
GCM, CBC = "http://www.w3.org/2009/xmlenc11#aes256-gcm", XENC + "aes128-cbc"
OAEP = XENC + "rsa-oaep-mgf1p"
signed_alone = sign(A, "_assertion")
keep("good-encrypted-gcm", "accepted", "a signed assertion, encrypted", response(encrypt(signed_alone, GCM, OAEP)))
keep("good-encrypted-cbc", "accepted", "AES-CBC inside a signed response", sign(response(encrypt(A, CBC, OAEP)), "_response"))
keep("good-encrypted-both", "accepted", "signed inside and outside", sign(response(encrypt(signed_alone, GCM, OAEP)), "_response"))

# -- XSW1 to XSW8: the eight classic places of the original and the forgery
def evil(xml):
    return xml.replace("ann@acme.example", "eve@evil.example")

def forged_response(original):
    forged = tree(evil(original)); forged.set("ID", "_forged")
    for owner in [forged, child(forged, "Assertion")]:
        for node in [n for n in owner if etree.QName(n).localname == "Signature"]: owner.remove(node)
    return forged

def forged_assertion(original):
    forged = child(tree(evil(original)), "Assertion"); forged.set("ID", "_forged")
    for node in [n for n in forged if etree.QName(n).localname == "Signature"]: forged.remove(node)
    return forged

o, f = tree(signed_response), forged_response(signed_response)
s = copy.deepcopy(child(o, "Signature")); inner = copy.deepcopy(o); inner.remove(child(inner, "Signature")); s.append(inner); f.insert(1, s)
keep("xsw1", "shape", "the original response inside the forged one's signature", text(f))
f = forged_response(signed_response); o = tree(signed_response); s = child(o, "Signature"); o.remove(s); f.insert(1, o); f.insert(2, s)
keep("xsw2", "shape", "the original response before a detached signature", text(f))
o = tree(signed_assertion); o.insert(2, forged_assertion(signed_assertion))
keep("xsw3", "shape", "a forged assertion before the original", text(o))
o = tree(signed_assertion); a = child(o, "Assertion"); o.remove(a); f = forged_assertion(signed_assertion); f.append(a); o.append(f)
keep("xsw4", "shape", "the original assertion inside the forged one", text(o))
o = tree(signed_assertion); a = child(o, "Assertion"); original = copy.deepcopy(a); original.remove(child(original, "Signature"))
a.set("ID", "_forged"); child(child(a, "Subject"), "NameID").text = "eve@evil.example"; o.append(original)
keep("xsw5", "shape", "the original without its signature behind a forged assertion that has it", text(o))
o = tree(signed_assertion); a = child(o, "Assertion"); original = copy.deepcopy(a); original.remove(child(original, "Signature"))
a.set("ID", "_forged"); child(a, "Signature").append(original)
keep("xsw6", "shape", "the original inside the signature of the forged assertion", text(o))
o = tree(signed_assertion); a = child(o, "Assertion"); e = etree.Element(f"{{{SAMLP}}}Extensions"); e.append(copy.deepcopy(forged_assertion(signed_assertion))); o.insert(1, e)
keep("xsw7", "shape", "the forged assertion in Extensions", text(o))
o = tree(signed_assertion); a = child(o, "Assertion"); original = copy.deepcopy(a); original.remove(child(original, "Signature")); a.set("ID", "_forged")
obj = etree.SubElement(child(a, "Signature"), f"{{{DS}}}Object"); obj.append(original)
keep("xsw8", "shape", "the original in an Object of the forged assertion's signature", text(o))
o = tree(signed_response); f = forged_response(signed_response); e = etree.Element(f"{{{SAMLP}}}Extensions"); e.append(o); f.insert(1, e)
keep("xsw-response-in-extensions", "shape", "the signed response in Extensions of a forged one", text(f))
for where in ["Advice", "SubjectConfirmationData"]:
    o = tree(signed_assertion); a = child(o, "Assertion"); o.remove(a); f = forged_assertion(signed_assertion)
    if where == "Advice": holder = etree.SubElement(f, f"{{{SAML}}}Advice")
    else: holder = child(child(child(f, "Subject"), "SubjectConfirmation"), "SubjectConfirmationData")
    holder.append(a); o.append(f)
    keep(f"wrapped-in-{where.lower()}", "shape", f"the signed assertion in {where} of the forged one", text(o))
foreign = f'<x:Wrapper xmlns:x="urn:x">{text(child(tree(signed_assertion), "Assertion"))}</x:Wrapper>'
keep("wrapped-in-foreign", "shape", "the signed assertion in an unknown element", response(text(forged_assertion(signed_assertion)), head=f"<samlp:Extensions>{foreign}</samlp:Extensions>"))
keep("assertion-not-in-response", "shape", "the only assertion is not a child of the response", response("", head=f"<samlp:Extensions>{text(child(tree(signed_assertion), 'Assertion'))}</samlp:Extensions>"))
keep("encrypted-two-assertions", "shape", "an encrypted assertion beside a plain one", response(encrypt(signed_alone, GCM, OAEP) + text(forged_assertion(signed_assertion))))
keep("encrypted-nested", "shape", "an assertion inside the encrypted one", response(encrypt(assertion(extra=f"<saml:Advice>{signed_alone}</saml:Advice>", id="_outer"), GCM, OAEP)))
keep("encrypted-something-else", "shape", "a response is encrypted", response(encrypt(signed_response, GCM, OAEP)))

# -- ids and names
keep("id-twice", "shape", "two elements with one ID", sign(R, "_assertion").replace('ID="_response"', 'ID="_assertion"', 1))
keep("id-prefixed", "shape", "x:ID before ID", signed_assertion.replace('ID="_assertion"', 'xmlns:x="urn:x" x:ID="_forged" ID="_assertion"', 1))
for spelling in ["Id", "id", "iD"]:
    keep(f"id-also-{spelling.lower() if spelling != 'iD' else 'mixed'}{'-capital' if spelling == 'Id' else ''}", "shape", f"{spelling} beside ID", signed_assertion.replace('ID="_assertion"', f'{spelling}="_forged" ID="_assertion"', 1))
keep("id-xml", "shape", "xml:id beside ID", signed_assertion.replace('ID="_assertion"', 'xml:id="_forged" ID="_assertion"', 1))
keep("id-on-subject", "shape", "an ID where none belongs", signed_assertion.replace("<saml:Subject>", '<saml:Subject ID="_x">', 1))
keep("attribute-prefixed-recipient", "shape", "x:Recipient beside Recipient", signed_assertion.replace(" Recipient=", f' xmlns:x="urn:x" x:Recipient="{ACS}" Recipient=', 1))
keep("element-wrong-namespace-nameid", "shape", "a NameID of no namespace before the real one", signed_assertion.replace("<saml:NameID", '<NameID>eve@evil.example</NameID><saml:NameID', 1))
keep("element-wrong-namespace-signature", "shape", "a Signature of a foreign namespace", signed_assertion.replace("<samlp:Status>", '<x:Signature xmlns:x="urn:x"/><samlp:Status>', 1))
keep("element-other-case", "shape", "an assertion in another case", signed_assertion.replace("<samlp:Status>", '<x:assertion xmlns:x="urn:x"/><samlp:Status>', 1))
keep("namespace-redeclared", "shape", "the prefix saml means something else inside the signed assertion", signed_assertion.replace('<saml:Subject>', '<saml:Subject xmlns:saml="urn:x">', 1))
keep("namespace-rebound-above", "shape", "another prefix takes over between response and assertion", signed_assertion.replace('<saml:Issuer>', '<saml:Issuer xmlns:saml="urn:x">', 1))
keep("saml-1", "shape", "SAML 1.1", signed_assertion.replace('Version="2.0" IssueInstant="2026-01-15T10:00:00Z" Destination', 'Version="1.1" IssueInstant="2026-01-15T10:00:00Z" Destination', 1))
keep("not-a-response", "shape", "an assertion alone", signed_alone)
keep("encrypted-id", "shape", "an EncryptedID", signed_assertion.replace("</saml:Subject>", "<saml:EncryptedID/></saml:Subject>", 1))

# -- comments, instructions, CDATA, DTD
for name, what, inside in [("comment", "a comment", "<!--x-->"), ("instruction", "an instruction", "<?x y?>"), ("cdata", "a CDATA section", "<![CDATA[.evil]]>")]:
    keep(f"{name}-in-nameid", "well_formed", f"{what} in the NameID", signed_assertion.replace("ann@acme.example</saml:NameID>", f"ann@acme.example{inside}.evil.example</saml:NameID>", 1))
    keep(f"{name}-in-attribute", "well_formed", f"{what} in an attribute's value", signed_assertion.replace("ann@acme.example</saml:AttributeValue>", f"ann@acme{inside}.example</saml:AttributeValue>", 1))
    keep(f"{name}-in-digest", "well_formed", f"{what} in DigestValue", signed_assertion.replace("<ds:DigestValue>", f"<ds:DigestValue>{inside}", 1))
    keep(f"{name}-in-signature", "well_formed", f"{what} in SignatureValue", signed_assertion.replace("<ds:SignatureValue>", f"<ds:SignatureValue>{inside}", 1))
keep("doctype", "well_formed", "a DOCTYPE", "<!DOCTYPE x>" + signed_assertion)
keep("entity-file", "well_formed", "an external entity", '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>' + signed_assertion.replace("Ann<", "&e;<"))
keep("entity-laughs", "well_formed", "entities of entities", '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>' + signed_assertion.replace("Ann<", "&b;<"))
keep("entity-undeclared", "well_formed", "an entity that nobody declared", signed_assertion.replace("Ann<", "&e;<"))
keep("too-deep", "well_formed", "a hundred levels", response(A, head="<samlp:Extensions>" + "<x>" * 100 + "</x>" * 100 + "</samlp:Extensions>"))
keep("too-many-nodes", "well_formed", "six thousand elements", response(A, head="<samlp:Extensions>" + "<x/>" * 6000 + "</samlp:Extensions>"))
keep("not-xml", "well_formed", "a text", "hello")
keep("cut-off", "well_formed", "the end is missing", signed_assertion[:-20])
keep("prefix-unbound", "well_formed", "a prefix that is not declared", signed_assertion.replace("<samlp:Status>", "<y:z/><samlp:Status>", 1))
keep("attribute-twice", "well_formed", "an attribute twice", signed_assertion.replace('ID="_assertion"', 'ID="_assertion" ID="_assertion"', 1))
keep("encoding-utf16", "well_formed", "declares UTF-16", '<?xml version="1.0" encoding="UTF-16"?>' + signed_assertion)
keep("two-roots", "well_formed", "two responses in a row", signed_assertion + signed_assertion)

# -- signatures
keep("unsigned", "signature", "nothing is signed", R)
keep("altered-nameid", "signature", "the NameID was changed", evil(signed_assertion))
keep("altered-response", "signature", "the destination was changed", signed_response.replace('InResponseTo="_request"', 'InResponseTo="_other"', 1))
keep("altered-signedinfo", "signature", "SignedInfo was changed", signed_assertion.replace("<ds:SignedInfo>", '<ds:SignedInfo Id="x">', 1))
keep("altered-space", "signature", "a space more in a value", signed_assertion.replace("ann@acme.example<", "ann@acme.example <", 1))
keep("other-key", "signature", "signed by somebody else", sign(R, "_assertion", key=KEYS["other"]))
info = f'<ds:KeyInfo><ds:X509Data><ds:X509Certificate>{"".join((HERE / "other.pem").read_text().splitlines()[1:-1])}</ds:X509Certificate></ds:X509Data></ds:KeyInfo>'
keep("other-key-in-keyinfo", "signature", "signed by somebody else, who brings the certificate", sign(R, "_assertion", key=KEYS["other"], info=info))
keep("small-key", "signature", "RSA with 1024 bits, though the certificate is the connection's", sign(R, "_assertion", key=KEYS["small"]))
keep("second-signature-bad", "signature", "a good assertion in a response that somebody else signed", sign(signed_assertion, "_response", key=KEYS["other"]))
keep("reference-empty", "signature", "the reference is to the whole document", sign(R, "_assertion", uri=""))
keep("reference-to-response", "signature", "the assertion's signature is over the response", sign(R, "_assertion", uri="#_response"))
keep("reference-external", "signature", "the reference is to a file", signed_assertion.replace('URI="#_assertion"', 'URI="file:///etc/passwd"', 1))
keep("reference-xpointer", "signature", "the reference is an XPointer", signed_assertion.replace('URI="#_assertion"', "URI=\"#xpointer(id('_assertion'))\"", 1))
keep("reference-none", "signature", "the reference has no URI", signed_assertion.replace(' URI="#_assertion"', "", 1))
keep("reference-foreign-but-signed", "signature", "signed by the right key with the right digest, but for another id", sign_again(signed_assertion.replace('URI="#_assertion"', 'URI="#_other"', 1)))
keep("reference-empty-but-signed", "signature", "the same with an empty reference", sign_again(signed_response.replace('URI="#_response"', 'URI=""', 1)))
keep("reference-twice", "shape", "two references", sign(R, "_assertion", references=2))
keep("signature-moved", "shape", "the assertion's signature is a child of Status", (lambda o: (child(o, "Status").append(child(child(o, "Assertion"), "Signature")), text(o))[1])(tree(signed_assertion)))
keep("signature-twice", "shape", "two signatures of one element", (lambda o: (child(o, "Assertion").insert(1, copy.deepcopy(child(child(o, "Assertion"), "Signature"))), text(o))[1])(tree(signed_assertion)))
keep("signature-detached", "shape", "the assertion's signature is a child of Extensions", (lambda o: (o.insert(1, etree.Element(f"{{{SAMLP}}}Extensions")), o[1].append(child(child(o, "Assertion"), "Signature")), text(o))[2])(tree(signed_assertion)))
keep("signature-of-assertion-at-response", "signature", "the assertion's signature is a child of the response", (lambda o: (o.insert(1, child(child(o, "Assertion"), "Signature")), text(o))[1])(tree(signed_assertion)))
keep("signature-value-empty", "signature", "no signature value", signed_assertion.replace(signed_assertion.split("<ds:SignatureValue>")[1].split("</ds:SignatureValue>")[0], "", 1))

# -- algorithms
SHA1 = DS + "sha1"
keep("sha1-signature", "algorithms", "RSA with SHA-1", sign(R, "_assertion", method=DS + "rsa-sha1"))
keep("sha1-digest", "algorithms", "a SHA-1 digest", sign(R, "_assertion", digest=SHA1))
keep("hmac-with-public-key", "algorithms", "HMAC with the certificate as its key", sign(R, "_assertion", hmac=HERE / "idp.pem", method="http://www.w3.org/2001/04/xmldsig-more#hmac-sha256"))
keep("method-none", "algorithms", "a method that nobody knows", signed_assertion.replace(RSA256, "none", 1))
keep("method-in-wrong-namespace", "shape", "x:Algorithm in place of Algorithm", signed_assertion.replace(f'<ds:SignatureMethod Algorithm="{RSA256}"', f'<ds:SignatureMethod xmlns:x="urn:x" x:Algorithm="{RSA256}"', 1))
keep("canonicalisation-inclusive", "algorithms", "inclusive canonicalisation", sign(R, "_assertion", canonical="http://www.w3.org/TR/2001/REC-xml-c14n-20010315"))
keep("canonicalisation-unknown", "algorithms", "a canonicalisation to nothing", signed_assertion.replace("xml-exc-c14n#\"/><ds:SignatureMethod", "x\"/><ds:SignatureMethod", 1))
E1 = f'<ds:Transform Algorithm="{DS}enveloped-signature"/>'
E2 = '<ds:Transform Algorithm="http://www.w3.org/2001/10/xml-exc-c14n#"/>'
keep("transform-only-enveloped", "algorithms", "no canonicalisation among the transforms", sign(R, "_assertion", transforms=E1))
keep("transform-only-canonical", "algorithms", "the signature is not left out", signed_assertion.replace(E1, "", 1))
keep("transform-swapped", "algorithms", "the transforms in the other order", signed_assertion.replace(E1 + E2, E2 + E1, 1))
keep("transform-unknown-but-signed", "algorithms", "signed by the right key with the right digest, but with another first transform", sign_again(signed_assertion.replace(E1, '<ds:Transform Algorithm="urn:x"/>', 1)))
keep("transform-xpath", "shape", "an XPath that drops what was signed", sign(R, "_assertion", transforms=E1 + f'<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xpath-19991116"><ds:XPath>not(ancestor-or-self::*[local-name()="Subject"])</ds:XPath></ds:Transform>' + E2))
keep("transform-xslt", "shape", "an XSLT that puts out a constant", signed_assertion.replace(E2, '<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"><xsl:stylesheet xmlns:xsl="http://www.w3.org/1999/XSL/Transform" version="1.0"/></ds:Transform>' + E2, 1))
keep("transform-base64", "algorithms", "a base64 transform, which drops all markup", signed_assertion.replace(E2, f'<ds:Transform Algorithm="{DS}base64"/>' + E2, 1))
keep("prefix-list-swallowed", "algorithms", "unknown parameters of canonicalisation", signed_assertion.replace(E2, E2.replace("/>", "><x xmlns=\"urn:x\"/></ds:Transform>"), 1))
long_list = " ".join(f"p{n}" for n in range(17))
keep("prefix-list-too-long", "algorithms", "more prefixes to keep than anybody needs, for each element to look at", signed_assertion.replace(E2, E2.replace("/>", f'><ec:InclusiveNamespaces xmlns:ec="http://www.w3.org/2001/10/xml-exc-c14n#" PrefixList="{long_list}"/></ds:Transform>'), 1))
keep("encrypted-rsa15", "algorithms", "RSA 1.5", response(encrypt(signed_alone, GCM, XENC + "rsa-1_5")))
keep("encrypted-3des", "algorithms", "3DES", response(encrypt(signed_alone, GCM, OAEP)).replace(GCM, XENC + "tripledes-cbc", 1))

# -- encryption
keep("encrypted-unsigned", "signature", "an encrypted assertion that nobody signed", response(encrypt(A, GCM, OAEP)))
keep("encrypted-cbc-unsigned-response", "decryption", "AES-CBC in an unsigned response", response(encrypt(signed_alone, CBC, OAEP)))
keep("encrypted-comment", "well_formed", "a comment inside the encrypted assertion", response(encrypt(signed_alone.replace("ann@acme.example</saml:NameID>", "ann@acme.example<!--x-->.evil</saml:NameID>"), GCM, OAEP)))
gcm = response(encrypt(signed_alone, GCM, OAEP))
tail = gcm.rindex("</xenc:CipherValue>")
flip = "B" if gcm[tail - 12] != "B" else "C"
keep("encrypted-gcm-altered", "decryption", "the ciphertext was changed", gcm[:tail - 12] + flip + gcm[tail - 11:])
os.rename(HERE / "sp.pem", HERE / "sp-kept.pem"); (HERE / "sp.pem").write_bytes((HERE / "other.pem").read_bytes())
keep("encrypted-for-another", "decryption", "encrypted for another key", response(encrypt(signed_alone, GCM, OAEP)))
os.rename(HERE / "sp-kept.pem", HERE / "sp.pem")

# -- what it says
def said(file, refusing, what, outer=None, **inner):
    keep(file, refusing, what, sign(response(assertion(**inner), **(outer or {})), "_assertion"))

said("issuer-other", "issuer", "another tenant of the same identity provider, same certificate", issuer="https://idp.example/other")
said("issuer-response-differs", "issuer", "response and assertion disagree", outer=dict(issuer="https://evil.example"))
said("status-failed", "status", "no success", outer=dict(status="Responder"))
keep("status-no-assertion", "status", "a refusal of the identity provider", response("", status="Requester"))
said("destination-other", "destination", "another destination", outer=dict(destination=' Destination="https://other.example/acs"'))
keep("destination-missing-signed", "destination", "a signed response without a destination", sign(response(A, destination=""), "_response"))
said("recipient-other", "recipient", "another recipient", recipient="https://login.example/auth/federation/saml/c2/acs")
said("confirmation-not-bearer", "recipient", "holder of key", method="urn:oasis:names:tc:SAML:2.0:cm:holder-of-key")
said("audience-other", "audience", "another audience", audience="https://other.example")
said("in-response-to-other", "in_response_to", "another request", request="_stolen")
said("in-response-to-response", "in_response_to", "the response answers another request", outer=dict(request=' InResponseTo="_stolen"'))
said("in-response-to-none", "in_response_to", "asked by nobody", request="")
said("time-ended", "times", "ended 60 seconds ago", after="2026-01-15T09:59:00Z", before="2026-01-15T09:00:00Z")
said("time-just-valid", "accepted", "ended 59.9 seconds ago", after="2026-01-15T09:59:00.1Z", before="2026-01-15T09:00:00Z")
said("time-not-begun", "times", "begins in 60.1 seconds", before="2026-01-15T10:01:00.1Z")
said("time-just-begun", "accepted", "begins in 60 seconds", before="2026-01-15T10:01:00Z")
said("time-issued-later", "times", "issued in the future", issued="2026-01-15T10:01:01Z")
said("time-authn-later", "times", "signed in in the future", authn="2026-01-15T10:01:01Z")
said("time-session-over", "times", "the session has ended", session=' SessionNotOnOrAfter="2026-01-15T10:00:00Z"')
said("time-session", "accepted", "the session ends in an hour", session=' SessionNotOnOrAfter="2026-01-15T11:00:00Z"')
said("time-nonsense", "times", "not a time", after="tomorrow")
said("no-address", "accepted", "neither an address nor an address-shaped NameID", name="ann", email="ann")
said("mfa-refeds", "accepted", "two factors", cls="https://refeds.org/profile/mfa")
said("nameid-empty", "attributes", "an empty NameID", name="")
keep("no-authn-statement", "times", "no AuthnStatement", sign(response(A[:A.index("<saml:AuthnStatement")] + A[A.index("<saml:AttributeStatement"):]), "_assertion"))
keep("audience-none", "audience", "no restriction", sign(response(A.replace(f"<saml:AudienceRestriction><saml:Audience>{ENTITY}</saml:Audience></saml:AudienceRestriction>", "")), "_assertion"))
keep("audience-two-restrictions", "audience", "a second restriction that does not name us", sign(response(A.replace("</saml:Conditions>", "<saml:AudienceRestriction><saml:Audience>x</saml:Audience></saml:AudienceRestriction></saml:Conditions>")), "_assertion"))

def bare(inner, attributes=""):
    end = f">{inner}</samlp:Response>" if inner else "/>"
    return f'<samlp:Response xmlns:samlp="{SAMLP}"{attributes}{end}\n'


def attributes(count):
    return "".join(f' a{n}="x"' for n in range(count))


keep("attributes-too-many", "well_formed", "one element with 70 attributes", bare("", attributes(70)))
keep("attributes-too-many-in-all", "well_formed", "100 elements with 50 attributes each", bare(f"<e{attributes(50)}/>" * 100))
declarations = "".join(f' xmlns:p{n}="urn:x:{n}"' for n in range(25))
keep("declarations-too-many", "well_formed", "a tag that declares more namespaces than any message needs", signed_assertion.replace("<samlp:Status>", f"<samlp:Status{declarations}>", 1))
keep("tags-too-many", "well_formed", "10,001 empty elements", bare("<e/>" * 10_001))

intro = """# Responses, good and hostile

Made by `make.py` with lxml and signed by xmlsec1, which shares no code with the crate. Each answers the request `_request` at
2026-01-15T10:00:00Z; the connection trusts `idp.pem`, `ec.pem`, `ec384.pem` and `small.pem`, decrypts with `sp.key`, and knows its provider as
`https://idp.example/metadata`. `tests/it/corpus.rs` fails when another step refuses a file than the one named here, and when a file
has no row. The keys exist for these files only.

| file | step that refuses it | what it is |
|---|---|---|
"""
(HERE / "README.md").write_text(intro + "".join(f"| `{name}.xml` | {step} | {what} |\n" for name, step, what in rows))
print(len(rows), "files")
