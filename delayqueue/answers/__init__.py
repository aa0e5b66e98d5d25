"""What the server answers: the server fills these classes, /openapi.json describes them, the Python client reads them.

They are the `data` of each endpoint's answer, with members in the order in which they are sent. Times are unix seconds,
durations seconds.
"""
