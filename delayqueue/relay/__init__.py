"""`delay-queue relay`: moves the rows of an outbox, a table in your database, to the server.

A row is what a program wants to happen when its transaction commits: a push, or a cancel. The relay is a client of the
server, and blocks: one transaction follows the other, and more relays are more processes.

- A row is taken when it is committed, pushed with its number as the idempotency key, and deleted. Whoever dies in
  between leaves it to be taken again, and the key makes the second push do nothing.
- Of one id only the first row is taken, and the next one when the delete of that is committed, by whatever relay: rows
  of one id are carried out one after the other. A row that cancels by tag waits for all earlier rows, and later ones
  wait for it.
- Two rows of an id never go in one transaction: a relay that dies before the commit leaves both to be taken again, and
  the server knows only the last key of an id. A cancel would end the job of the push behind it, whose repetition does
  nothing; a push before another one would come back after the end of that. So a batch is a round: it has a row of each
  of many ids, and the next round has the rows behind them.
- Rows are locked while they are moved (SKIP LOCKED: other relays take others), for the time of a lease at most.
"""
