<?php

declare(strict_types=1);

namespace DelayQueue\Client;

use DelayQueue\Client\Exception\DelayQueueException;
use DelayQueue\Client\Exception\QueueException;
use DelayQueue\Client\Exception\TooLarge;
use DelayQueue\Client\Exception\TransportException;
use DelayQueue\Client\Internal\Address;
use DelayQueue\Client\Internal\Data;
use DelayQueue\Client\Internal\Duration;
use DelayQueue\Client\Internal\Fields;
use DelayQueue\Client\Internal\Retries;
use DelayQueue\Client\Internal\UnexpectedAnswer;
use DelayQueue\Client\Transport\CurlTransport;
use DelayQueue\Client\Transport\Request;
use DelayQueue\Client\Transport\Response;
use DelayQueue\Client\Transport\Transport;
use Psr\Log\LoggerInterface;

/**
 * Client for a delay-queue server.
 *
 * Every method is an endpoint of the HTTP API; those that end jobs or read are repeated if the connection breaks or the
 * store is unavailable, others only if the server answers "too many requests". Lengths of time are seconds, a DateInterval
 * or a text such as "500ms", "15s", "30m", "1.5h", "1d"; moments are unix seconds or a DateTimeInterface.
 */
class Client
{
    use Verbs\JobVerbs;
    use Verbs\TopicVerbs;
    use Verbs\SubscriberVerbs;
    use Verbs\ScheduleVerbs;
    use Verbs\ServerVerbs;

    private const NO_SUCH_JOB = 2;

    private const STALE_RECEIPT = 4;

    private const TOO_LARGE = 9;

    private const TOO_LARGE_STATUS = 413;

    private readonly Address $address;

    private readonly Transport $transport;

    private ?float $timeoutSeconds;

    /**
     * @param string|null $url null = that of the variable DELAYQUEUE_URL, or else http://127.0.0.1:9277
     * @param string|null $token null = that of the variable DELAYQUEUE_TOKEN, if it is set
     * @param int|float|string|\DateInterval|null $timeout how long a call may take with its repetitions, on top of the time
     *     that the server may wait for jobs; null = 5 s for a push, 10 s for any other
     * @param int $retries after 0.1 s, 0.4 s, 1.6 s, …, within that time
     * @param Transport|null $transport null = PHP's curl extension
     */
    public function __construct(
        #[\SensitiveParameter] ?string $url = null,
        #[\SensitiveParameter] ?string $token = null,
        int|float|string|\DateInterval|null $timeout = null,
        private int $retries = 2,
        ?Transport $transport = null,
        private readonly ?LoggerInterface $logger = null,
    ) {
        $this->address = Address::of($url, $token);
        $this->timeoutSeconds = Duration::secondsOrNull($timeout);
        $this->transport = $transport ?? new CurlTransport();
    }

    /** A client of the same server with other patience; both use the same connections. */
    public function with(int|float|string|\DateInterval|null $timeout = null, ?int $retries = null): static
    {
        $client = clone $this;
        $client->timeoutSeconds = Duration::secondsOrNull($timeout) ?? $this->timeoutSeconds;
        $client->retries = $retries ?? $this->retries;

        return $client;
    }

    /** Where the server is. */
    public function url(): string
    {
        return $this->address->url;
    }

    /**
     * Makes a call, and makes it again if that is safe.
     *
     * @internal
     *
     * @template T
     *
     * @param Call<T> $call
     *
     * @return T
     *
     * @throws DelayQueueException
     */
    public function send(Call $call): mixed
    {
        $body = Fields::json($call->request, "the request for $call->path");
        $patience = $this->timeoutSeconds ?? $call->timeoutSeconds;
        $limit = $call->waitSeconds === null ? INF : $call->waitSeconds + $patience;
        $lost = null; // the first try that may have been carried out
        $start = self::now();
        $left = $limit;
        for ($number = 0; ; $number++) {
            $began = self::now();
            $outcome = $this->try($call, $body, $left, min($left, $patience));
            $left = $limit - (self::now() - $start);
            $mostSeconds = $number < $this->retries ? $left : 0.0;
            $pause = Retries::pauseAfter($call, $outcome, $number);
            if ($pause === null || $pause >= $mostSeconds) {
                $result = $this->result($call, $outcome, $lost);
                $pause = Retries::pauseAfterEmpty($call, $result, self::now() - $began);
                if ($pause === null || $pause >= $mostSeconds) {
                    return $result;
                }
            }
            $lost ??= Retries::isRefused($outcome) ? null : $outcome;
            $this->logger?->warning('delay-queue: {path} again in {pause} s: {reason}', [
                'path' => $call->path,
                'pause' => $pause,
                'reason' => $outcome instanceof Response ? "HTTP status $outcome->status" : $outcome->getMessage(),
            ]);
            usleep(max(0, (int) ($pause * 1e6)));
            $left = $limit - (self::now() - $start);
        }
    }

    /** @param Call<mixed> $call */
    private function try(Call $call, string $body, float $seconds, float $connectSeconds): Response|TransportException
    {
        $request = new Request(
            url: $this->address->url . $call->path,
            headers: $this->address->headers,
            body: $body,
            timeoutSeconds: $seconds === INF ? null : $seconds,
            connectSeconds: $connectSeconds,
            stop: $call->stop,
        );
        try {
            return $this->transport->send($request);
        } catch (TransportException $error) {
            return $error;
        }
    }

    /**
     * @template T
     *
     * @param Call<T> $call
     * @param Response|TransportException|null $lost what became of an earlier try that may have been carried out
     *
     * @return T
     */
    private function result(Call $call, Response|TransportException $outcome, Response|TransportException|null $lost): mixed
    {
        if ($outcome instanceof TransportException) {
            throw $outcome;
        }
        try {
            $envelope = Data::of(json_decode($outcome->body, true, flags: JSON_THROW_ON_ERROR));
            [$code, $message, $data] = [$envelope->int('code'), $envelope->string('message'), $envelope->value('data')];
            if ($lost !== null && $call->goneIsDone) {
                $code = $code === self::NO_SUCH_JOB ? 0 : $code;
                $data = self::eachWithoutGone($data);
            }
            if ($code === 0) {
                return ($call->read)($data);
            }
        } catch (\JsonException | UnexpectedAnswer $error) {
            $status = "HTTP status $outcome->status";
            if ($outcome->status === self::TOO_LARGE_STATUS) { // of a proxy before the server
                throw new TooLarge("$status: the request is larger than a proxy lets through", self::TOO_LARGE);
            }
            [$code, $what] = Retries::isAway($outcome)
                ? [0, 'a proxy got no answer from the server']
                : [$outcome->status, 'this is not a delay-queue server'];
            $start = substr($outcome->body, 0, 80);

            throw new TransportException("{$this->address->url}: $what: $status, $start", $code, $error);
        }

        if ($lost !== null && $call->endsReceipt && in_array($code, [self::NO_SUCH_JOB, self::STALE_RECEIPT], true)) {
            return $this->result($call, $lost, null);
        }

        throw QueueException::of($code, $message, Retries::isRefused($outcome) ? Retries::askedSeconds($outcome) : 0.0);
    }

    /** In a batch, each job has its own code. */
    private static function eachWithoutGone(mixed $data): mixed
    {
        return is_array($data)
            ? array_map(static fn (mixed $each): mixed => is_array($each) && ($each['code'] ?? null) === self::NO_SUCH_JOB
                ? ['code' => 0] + $each
                : $each, $data)
            : $data;
    }

    private static function now(): float
    {
        return hrtime(true) / 1e9;
    }
}
