"""Runs a script of commands through redis-py and prints each reply's leaves on
a line. See test/clients.

usage: main.py HOST:PORT one|pipeline <commands
"""

import sys

import redis


def leaves(v):
    if v is None:
        return ["nil"]
    if isinstance(v, Exception):
        return ["!"]
    if isinstance(v, bytes):
        return [v.decode()]
    if isinstance(v, dict):
        v = [item for pair in v.items() for item in pair]
    if isinstance(v, (list, tuple, set)):
        return [leaf for item in v for leaf in leaves(item)]
    return [str(v)]


def ask(client, args):
    try:
        return client.execute_command(*args)
    except redis.ResponseError as e:
        return e


host, port = sys.argv[1].split(":")
# One connection, as MULTI needs; replies as they come, not turned into Python's
# own by the name of the command.
client = redis.Redis(host=host, port=int(port), single_connection_client=True)
client.response_callbacks.clear()

commands = [line.rstrip("\n").split(" ") for line in sys.stdin]
if sys.argv[2] == "pipeline":
    pipeline = client.pipeline(transaction=False)
    for args in commands:
        pipeline.execute_command(*args)
    replies = pipeline.execute(raise_on_error=False)
else:
    replies = [ask(client, args) for args in commands]
for reply in replies:
    print(" ".join(leaves(reply)) or "empty")
