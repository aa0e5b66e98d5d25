"""`delay-queue relay`: moves the rows of an outbox, a table in your database, to the server.

A row is what a program wants to happen when its transaction commits: a push, or a cancel. The relay is a client of the
server, and blocks: one transaction follows the other, and more relays are more processes.

- A row is taken when it is committed, pushed with its number as the idempotency key, and deleted. Whoever dies in
  between leaves it to be taken again, and the key makes the second push do nothing.
- Of one id only the first row is taken, and the next one when that is deleted, by whatever relay: rows of one id are
  carried out one after the other. A row that cancels by tag waits for all earlier rows, and later ones wait for it.
- Rows are locked while they are moved (SKIP LOCKED: other relays take others), for the time of a lease at most.
"""
