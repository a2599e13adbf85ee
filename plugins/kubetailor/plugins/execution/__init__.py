"""One execution of Flyte's, whoever looks at it: the webhook at `launch`, or a client before it.

Nothing here talks to a server, and nothing imports flytekit.
"""
