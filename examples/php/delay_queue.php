<?php
// A client in two functions, with nothing but PHP's curl extension. Copy it.

class QueueError extends \RuntimeException
{
    // getCode() is a code of docs/api.md, or -1 if there was no answer
}

/** Calls an endpoint: queue('finish', ['id' => '1001']). Returns the answer's `data`; every error is a QueueError. */
function queue(string $verb, array $request): mixed
{
    static $curl = null; // kept between calls, so the connection stays open
    $curl ??= curl_init();
    $token = getenv('DELAYQUEUE_TOKEN'); // if the server requires one
    curl_setopt_array($curl, [
        CURLOPT_URL => (getenv('DELAYQUEUE_URL') ?: 'http://localhost:9277') . "/$verb",
        CURLOPT_POSTFIELDS => json_encode($request, JSON_THROW_ON_ERROR),
        CURLOPT_HTTPHEADER => $token ? ["Authorization: Bearer $token"] : [],
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 200, // seconds: longer than /pop waits
    ]);
    $text = curl_exec($curl);
    $answer = $text === false ? null : json_decode($text, true);
    if (!is_int($answer['code'] ?? null) || !is_string($answer['message'] ?? null)) {
        throw new QueueError(curl_error($curl) ?: 'not an answer of the queue', -1);
    }
    if ($answer['code'] !== 0) {
        throw new QueueError($answer['message'], $answer['code']);
    }
    return $answer['data'] ?? null;
}

/** The same for workers: repeats the call until there is an answer, as after a restart or a failover. */
function insist(string $verb, array $request): mixed
{
    // what went wrong may be said in GBK, which JSON cannot hold
    $request = json_decode(json_encode($request, JSON_INVALID_UTF8_SUBSTITUTE), true);
    while (true) {
        try {
            return queue($verb, $request);
        } catch (QueueError $error) {
            if (!in_array($error->getCode(), [-1, 6], true)) { // -1: no answer; 6: the store is away
                throw $error;
            }
            fwrite(STDERR, "{$error->getMessage()}\n");
            sleep(1);
        }
    }
}
