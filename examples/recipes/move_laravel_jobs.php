<?php
// Moves what waits in Laravel's table `jobs`: php move_laravel_jobs.php APPLICATION DSN [USER [PASSWORD]]
//
// Stop `queue:work database` before. You can run it again at any time: a row is deleted once the server has its job,
// and a job that an earlier run has pushed is not pushed again, even if it is done by now.

require __DIR__ . '/delay_queue.php';

const TTR = 90; // seconds: `retry_after` (beanstalkd) or `ttr` (HTTP) of the new connection; more if a job's `timeout` is longer
const KNOWN = 7 * 86400; // seconds that the server keeps a moved job after its end, so that it knows it
const OF_THE_ROW = [1, 9]; // codes: this job is refused, others may not be

[, $application, $dsn, $user, $password] = $argv + [null, null, null, null, null];
$dsn ?? throw new InvalidArgumentException('php move_laravel_jobs.php APPLICATION DSN [USER [PASSWORD]]');
$database = new PDO($dsn, $user, $password, [PDO::ATTR_ERRMODE => PDO::ERRMODE_EXCEPTION]);
$next = $database->prepare('SELECT * FROM jobs WHERE id > ? ORDER BY id LIMIT 100');
[$moved, $refused, $last] = [0, 0, 0];
while ($next->execute([$last]) && $rows = $next->fetchAll(PDO::FETCH_ASSOC)) {
    foreach ($rows as $row) {
        $last = $row['id'];
        try {
            queue('push', [
                'topic' => $row['queue'],
                'id' => "laravel-$application-$row[id]-$row[created_at]", // a table that is emptied counts from 1 again
                'due' => (int) $row['available_at'],
                'ttr' => max(TTR, 30 + (int) (json_decode($row['payload'], true)['timeout'] ?? 0)),
                'body' => $row['payload'],
                'if_exists' => 'keep',
                'retain' => KNOWN,
            ]);
        } catch (QueueError | InvalidArgumentException $error) { // the latter: it is not UTF-8
            if ($error instanceof QueueError && !in_array($error->getCode(), OF_THE_ROW, true)) {
                throw $error; // no server, or no store
            }
            fwrite(STDERR, "row $row[id]: {$error->getMessage()}\n");
            $refused++;
            continue;
        }
        $database->prepare('DELETE FROM jobs WHERE id = ?')->execute([$row['id']]);
        $moved++;
    }
}
echo "moved $moved jobs, $refused refused\n";
exit($refused ? 1 : 0);
