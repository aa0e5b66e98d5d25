<?php

declare(strict_types=1);

namespace DelayQueue\Client\Transport;

use DelayQueue\Client\Exception\Interrupted;
use DelayQueue\Client\Exception\TransportException;

/**
 * Sends requests by PHP's curl extension, over connections that stay open.
 *
 * A call takes an idle handle out of the pool and puts it back afterwards. So a signal handler, a fiber or a coroutine may
 * call while another call is under way. A fork makes connections of its own, and leaves those of its parent alone.
 */
final class CurlTransport implements Transport
{
    private const SEND_FAIL_REWIND = 65; // of curl_errno(): an open connection broke, and the request cannot be repeated

    /** @var array<int, array{\CurlHandle, \CurlShareHandle}> by process, a fork's and its parents': see connections() */
    private static array $shares = [];

    /** @var list<\CurlHandle> */
    private array $idle = [];

    private int $process;

    /** @param array<int, mixed> $options of curl, such as [CURLOPT_CAINFO => '/etc/ssl/our-ca.pem'] */
    public function __construct(private readonly array $options = [])
    {
        $this->process = (int) getmypid();
    }

    public function send(Request $request): Response
    {
        if ($this->process !== getmypid()) { // a fork: its parent goes on using these connections
            $this->idle = [];
            $this->process = (int) getmypid();
        }
        $curl = array_pop($this->idle) ?? self::open();
        curl_setopt_array($curl, $this->optionsOf($request));
        $text = curl_exec($curl);
        if (!is_string($text)) {
            $code = curl_errno($curl);
            $reason = $code === self::SEND_FAIL_REWIND ? 'the connection broke before the answer' : curl_error($curl);
            $message = "$request->url: $reason";

            throw $code === CURLE_ABORTED_BY_CALLBACK
                ? new Interrupted($message)
                : new TransportException($message);
        }
        $status = (int) curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        $headBytes = (int) curl_getinfo($curl, CURLINFO_HEADER_SIZE);
        curl_reset($curl); // its connection stays open
        $this->idle[] = $curl;

        return new Response($status, substr($text, $headBytes), self::retryAfter(substr($text, 0, $headBytes)));
    }

    private static function open(): \CurlHandle
    {
        $curl = curl_init() ?: throw new TransportException('curl has no memory');
        // without pcntl nothing forks; Swoole has a curl of its own, which knows no shares
        if (function_exists('pcntl_fork') && !extension_loaded('swoole')) {
            curl_setopt($curl, CURLOPT_SHARE, self::connections());
        }

        return $curl;
    }

    /**
     * The connections of this process, which last as long as it.
     *
     * When a fork ends, PHP frees its copies of the handles, and libcurl would say goodbye on connections over TLS
     * that its parent uses. It does not close those of a share that a handle still has. At its end PHP frees what is
     * left from the highest object id to the lowest, so a share goes before a handle with a lower id.
     */
    private static function connections(): \CurlShareHandle
    {
        $process = (int) getmypid();
        if (!isset(self::$shares[$process])) {
            $handle = curl_init() ?: throw new TransportException('curl has no memory');
            $tried = [];
            do {
                $tried[] = $share = curl_share_init(); // freed ids are given again, the low ones, too
            } while (spl_object_id($share) < spl_object_id($handle));
            curl_share_setopt($share, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT);
            curl_setopt($handle, CURLOPT_SHARE, $share);
            self::$shares[$process] = [$handle, $share];
        }

        return self::$shares[$process][1];
    }

    /** @return array<int, mixed> */
    private function optionsOf(Request $request): array
    {
        $lines = ['Expect:']; // no question before a large body
        foreach ($request->headers as $name => $value) {
            $lines[] = "$name: $value";
        }

        $stop = $request->stop;

        return $this->options + [
            CURLOPT_URL => $request->url,
            CURLOPT_CUSTOMREQUEST => 'POST',
            CURLOPT_HTTPHEADER => $lines,
            // libcurl repeats a request by itself if an open connection breaks before the answer, a /pop too. It cannot
            // repeat a body that it reads from a function
            CURLOPT_UPLOAD => true,
            CURLOPT_INFILESIZE => strlen($request->body),
            CURLOPT_READFUNCTION => self::reader($request->body),
            CURLOPT_RETURNTRANSFER => true,
            CURLOPT_HEADER => true,
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_HTTP_VERSION => CURL_HTTP_VERSION_1_1,
            CURLOPT_PROXY => '', // not even that of the environment
            CURLOPT_TCP_KEEPALIVE => 1, // a poll waits for minutes
            CURLOPT_NOSIGNAL => true,
            CURLOPT_CONNECTTIMEOUT_MS => self::milliseconds($request->connectSeconds),
            CURLOPT_TIMEOUT_MS => $request->timeoutSeconds === null ? 0 : self::milliseconds($request->timeoutSeconds),
        ] + ($stop === null ? [] : [
            CURLOPT_NOPROGRESS => false,
            // called at least once a second, and after each signal; an answer that has begun is read to its end
            CURLOPT_PROGRESSFUNCTION => static fn (\CurlHandle $curl, int $size, int $read): int
                => $read === 0 && $stop() ? 1 : 0,
        ]);
    }

    /** At least one: 0 would be no limit. */
    private static function milliseconds(float $seconds): int
    {
        return max(1, (int) ceil($seconds * 1000));
    }

    private static function reader(string $body): \Closure
    {
        $sent = 0;

        return static function (\CurlHandle $curl, mixed $file, int $length) use ($body, &$sent): string {
            $part = substr($body, $sent, $length);
            $sent += strlen($part);

            return $part;
        };
    }

    private static function retryAfter(string $head): string
    {
        return preg_match('/^retry-after:\s*(\S+)/mi', $head, $found) === 1 ? $found[1] : '';
    }
}
