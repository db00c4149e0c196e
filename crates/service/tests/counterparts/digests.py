"""Digests of passwords as other systems keep them: of each algorithm, in hex and base64 where there is a choice, without
a pepper and with one on either side. Prints a list of `{ password, digest }`, where `digest` is an import's password."""

import base64
import hashlib
import json

import argon2
import bcrypt
from passlib.hash import pbkdf2_sha1, pbkdf2_sha256, pbkdf2_sha512, scrypt


def argon(kind):
    hasher = argon2.PasswordHasher(time_cost=1, memory_cost=1024, parallelism=2, type=kind)
    return lambda text: hasher.hash(text)


def plain(name, encode):
    return lambda text: encode(hashlib.new(name, text.encode()).digest()).decode()


def hexadecimal(digest):
    return digest.hex().encode()


MAKERS = [
    ("BCRYPT", lambda text: bcrypt.hashpw(text.encode(), bcrypt.gensalt(4)).decode()),
    ("ARGON2I", argon(argon2.Type.I)),
    ("ARGON2ID", argon(argon2.Type.ID)),
    ("PBKDF2", pbkdf2_sha1.using(rounds=1000).hash),
    ("PBKDF2", pbkdf2_sha256.using(rounds=1000).hash),
    ("PBKDF2", pbkdf2_sha512.using(rounds=1000).hash),
    ("SCRYPT", scrypt.using(rounds=8).hash),
]
for name in ["md5", "sha1", "sha256", "sha512"]:
    for encode in [hexadecimal, base64.b64encode]:
        MAKERS.append((name.upper(), plain(name, encode)))

made = []
for algorithm, digest in MAKERS:
    for position in [None, "BEGIN", "END"]:
        password = f"violet harbour {len(made)} ä"
        pepper = f"pepper of {algorithm}"
        text = {None: password, "BEGIN": pepper + password, "END": password + pepper}[position]
        entry = {"value": digest(text), "algorithm": algorithm}
        if position:
            entry["pepper"] = {"value": pepper, "position": position}
        made.append({"password": password, "digest": entry})
print(json.dumps(made))
