<?php
// php -S 127.0.0.1:8080 receiver.php

$header = fn (string $name): string => $_SERVER['HTTP_WEBHOOK_' . $name] ?? '';
$body = file_get_contents('php://input');
$key = base64_decode(substr(getenv('CALL_SECRET'), strlen('whsec_')));
$signed = $header('ID') . '.' . $header('TIMESTAMP') . '.' . $body;
$expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
if (abs(time() - (int) $header('TIMESTAMP')) > 300 || !hash_equals($expected, $header('SIGNATURE'))) {
    http_response_code(401);
    exit('not from our queue');
}
// at least once: a unique key of your database tells whether this id was here before
error_log($header('ID') . ": $body");
echo 'success';
