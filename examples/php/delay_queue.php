<?php
// A client in two functions, with nothing but PHP's curl extension. Copy it: PHP 7.2 and newer.

class QueueError extends RuntimeException
{
    // getCode() is a code of docs/api.md, or -1 if there was no answer
}

/** Calls an endpoint: queue('finish', ['id' => '1001']). Returns the answer's `data`; a refusal is a QueueError. */
function queue(string $verb, array $request)
{
    static $open = []; // one connection per process, since a fork needs its own; kept open between calls
    $url = (getenv('DELAYQUEUE_URL') ?: 'http://localhost:9277') . "/$verb";
    $token = getenv('DELAYQUEUE_TOKEN'); // if the server requires one
    $body = json_encode($request ?: new stdClass());
    if ($body === false) {
        throw new InvalidArgumentException('the request cannot be JSON: ' . json_last_error_msg());
    }
    $file = fopen('php://memory', 'w+');
    fwrite($file, $body);
    rewind($file);
    $curl = $open[getmypid()] = $open[getmypid()] ?? curl_init();
    curl_setopt_array($curl, [
        CURLOPT_URL => $url,
        CURLOPT_CUSTOMREQUEST => 'POST',
        CURLOPT_UPLOAD => true, // with POSTFIELDS, libcurl repeats a call whose kept connection breaks, even a push
        CURLOPT_INFILE => $file,
        CURLOPT_INFILESIZE => strlen($body),
        CURLOPT_HTTPHEADER => $token ? ['Expect:', "Authorization: Bearer $token"] : ['Expect:'],
        CURLOPT_PROXY => '', // not even that of the environment
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => $verb === 'push' ? 5 : 200, // seconds: a web page waits for a push, but a /pop may take minutes
        CURLOPT_FORBID_REUSE => strpos($url, 'https:') === 0, // a fork that ends would close its parent's connection
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

/** Calls an endpoint as queue() does, but again and again until there is an answer: for workers, which outlive a restart. */
function insist(string $verb, array $request)
{
    array_walk_recursive($request, function (&$value) {
        if (is_string($value)) { // an error message may be in GBK, which JSON cannot hold
            $value = json_decode(json_encode($value, JSON_INVALID_UTF8_SUBSTITUTE));
        }
    });
    while (true) {
        try {
            return queue($verb, $request);
        } catch (QueueError $error) {
            if (!in_array($error->getCode(), [-1, 6, 10], true)) { // -1: no answer; 6: the store is away; 10: too busy
                throw $error;
            }
            fwrite(STDERR, "{$error->getMessage()}\n");
            sleep(1);
        }
    }
}
