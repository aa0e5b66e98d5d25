<?php

declare(strict_types=1);

namespace DelayQueue\Symfony;

use DelayQueue\Client\Client;
use DelayQueue\Client\Exception\BadBody;
use DelayQueue\Client\Exception\DelayQueueException;
use DelayQueue\Client\Exception\NoSuchJob;
use DelayQueue\Client\Exception\StaleReceipt;
use DelayQueue\Client\Job;
use DelayQueue\Client\State;
use Symfony\Component\Messenger\Envelope;
use Symfony\Component\Messenger\Exception\LogicException;
use Symfony\Component\Messenger\Exception\MessageDecodingFailedException;
use Symfony\Component\Messenger\Exception\TransportException;
use Symfony\Component\Messenger\Stamp\DelayStamp;
use Symfony\Component\Messenger\Stamp\RedeliveryStamp;
use Symfony\Component\Messenger\Stamp\SentToFailureTransportStamp;
use Symfony\Component\Messenger\Stamp\TransportMessageIdStamp;
use Symfony\Component\Messenger\Transport\Receiver\ListableReceiverInterface;
use Symfony\Component\Messenger\Transport\Receiver\MessageCountAwareInterface;
use Symfony\Component\Messenger\Transport\Serialization\SerializerInterface;
use Symfony\Component\Messenger\Transport\TransportInterface;

/** Messages of Symfony Messenger as jobs of one topic. */
final class DelayQueueTransport implements TransportInterface, ListableReceiverInterface, MessageCountAwareInterface
{
    public const RETRIES = 4; // within 8.5 s, the time of a restart or a failover

    /**
     * Of a message whose ttr runs out, again and again: 20 attempts in about eight hours, as the client's worker has.
     *
     * Messenger's own retries are new jobs, which begin with the first attempt.
     */
    private const RETRY = ['max' => 19, 'base' => '1s', 'factor' => 2, 'cap' => '1h'];

    public function __construct(
        private readonly Client $client,
        private readonly SerializerInterface $serializer,
        private readonly string $topic,
        private readonly int|float $ttr,
        private readonly float $wait,
        private readonly string $name = '',
        private readonly WorkerTransports $workerTransports = new WorkerTransports(),
    ) {
    }

    public function send(Envelope $envelope): Envelope
    {
        $failed = $envelope->last(RedeliveryStamp::class) === null
            ? null
            : $envelope->last(DelayQueueReceivedStamp::class);
        if ($failed !== null && !$this->asking($failed->isHeld(...))) {
            return $envelope;
        }
        $stamp = $envelope->last(DelayQueueStamp::class) ?? new DelayQueueStamp();
        $delay = $envelope->last(DelayStamp::class);
        $message = $this->serializer->encode($envelope);
        $id = $this->asking(fn (): string => $this->client->push(
            $this->topic,
            ['body' => $message['body'], 'headers' => $message['headers'] ?? []],
            id: $this->idOf($envelope, $stamp, $failed),
            delay: max(0, ($delay?->getDelay() ?? 0) / 1000), // a time that has passed is now
            ttr: $stamp->ttr ?? $this->ttr,
            tags: $stamp->tags,
            retry: self::RETRY,
            priority: $stamp->priority,
            group: $stamp->group,
        ));

        return $envelope->with(new TransportMessageIdStamp($id));
    }

    public function get(): iterable
    {
        $wait = $this->workerTransports->waitAt($this->name) ? $this->wait : 0.0;
        $job = $this->asking(fn (): ?Job => $this->client->pop($this->topic, wait: $wait));
        if ($job === null) {
            return [];
        }
        try {
            return [$this->decode($job->id, $job->json(), $job)];
        } catch (MessageDecodingFailedException | BadBody $error) { // the next time it would be the same
            $this->asking(fn () => $this->client->bury($job, $error->getMessage()));

            return [];
        }
    }

    public function ack(Envelope $envelope): void
    {
        $this->end($envelope);
    }

    /** Messenger has sent it again, or to the failure transport, before. */
    public function reject(Envelope $envelope): void
    {
        $this->end($envelope);
    }

    /** How many messages are ready. */
    public function getMessageCount(): int
    {
        $topics = $this->asking(fn (): array => $this->client->topics([$this->topic]));

        return $topics === [] ? 0 : $topics[0]->ready;
    }

    public function all(?int $limit = null): iterable
    {
        $cursor = null;
        do {
            $page = $this->asking(fn () => $this->client->listJobs($this->topic, cursor: $cursor));
            foreach ($page->jobs as $job) {
                if (in_array($job->state, [State::Delayed, State::Ready], true) && ($limit === null || $limit-- > 0)) {
                    yield $this->decode($job->id, self::parse($job->body), $job->id);
                }
            }
            $cursor = $page->cursor;
        } while ($cursor !== '' && ($limit === null || $limit > 0));
    }

    public function find(mixed $id): ?Envelope
    {
        $job = $this->asking(fn () => $this->client->get((string) $id));

        return $job === null || $job->topic !== $this->topic
            ? null
            : $this->decode($job->id, self::parse($job->body), $job->id);
    }

    /** One that is sent again takes the place of the job that failed: there is never more than one of them. */
    private function idOf(Envelope $envelope, DelayQueueStamp $stamp, ?DelayQueueReceivedStamp $failed): ?string
    {
        if ($failed?->job instanceof Job && $failed->client === $this->client) {
            return $failed->job->id;
        }

        // an id names a job in one topic, and one that goes to the failure transport still has it in its own
        return $envelope->last(SentToFailureTransportStamp::class) === null ? $stamp->id : null;
    }

    private function end(Envelope $envelope): void
    {
        $stamp = $envelope->last(DelayQueueReceivedStamp::class)
            ?? throw new LogicException('No DelayQueueReceivedStamp found on the Envelope.');
        $this->asking(function () use ($stamp): void {
            try {
                $this->client->with(retries: self::RETRIES)->finish($stamp->job);
            } catch (StaleReceipt | NoSuchJob) {
                // it was sent again under its id, was cancelled, or took longer than its ttr: it is not ours any more
            }
        });
    }

    /** @return array<mixed> */
    private static function parse(string $body): array
    {
        return (array) json_decode($body, true);
    }

    /**
     * @param array<mixed> $message
     *
     * @throws MessageDecodingFailedException
     */
    private function decode(string $id, array $message, Job|string $job): Envelope
    {
        $message = array_intersect_key($message, ['body' => '', 'headers' => '']);
        if (!is_string($message['body'] ?? null) || !is_array($message['headers'] ?? null)) {
            throw new MessageDecodingFailedException('the body is not one of Symfony Messenger');
        }

        return $this->serializer->decode($message)
            ->withoutAll(TransportMessageIdStamp::class)
            ->with(new DelayQueueReceivedStamp($job, $this->client), new TransportMessageIdStamp($id));
    }

    /**
     * @template T
     *
     * @param \Closure(): T $ask
     *
     * @return T
     */
    private function asking(\Closure $ask): mixed
    {
        try {
            return $ask();
        } catch (DelayQueueException $error) {
            throw new TransportException($error->getMessage(), (int) $error->getCode(), $error);
        }
    }
}
