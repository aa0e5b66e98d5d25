<?php

declare(strict_types=1);

namespace DelayQueue\Client\Verbs;

use DelayQueue\Client\Answer\Subscriber;
use DelayQueue\Client\Answer\SubscriberPage;
use DelayQueue\Client\Answer\Trial;
use DelayQueue\Client\Call;
use DelayQueue\Client\IfExists;
use DelayQueue\Client\Internal\Data;
use DelayQueue\Client\Internal\Duration;
use DelayQueue\Client\Internal\Fields;

/** The endpoints from /subscribe to /try-subscriber. Those that take a name throw NoSuchJob if no subscriber has it. */
trait SubscriberVerbs
{
    /**
     * Registers `url` as a webhook for the due jobs of a topic. Throws JobExists if the name is taken by another one,
     * unless `ifExists` says otherwise: 'change' changes only what is given, and throws NoSuchJob if there is none.
     *
     * @param string|null $topic required, as is the URL, unless the subscriber is changed
     * @param int|null $order the subscribers of a topic are called in this order
     * @param int|float|string|\DateInterval|null $timeout of a call
     * @param string|array<mixed>|null $retry for jobs without a schedule of their own, as in push()
     * @param int|null $concurrency calls at once from each server process
     * @param string|null $secret "whsec_" and base64, with which calls are signed
     * @param string|null $expect what the answer must be, or contain as in "*success*"
     * @param 'bury'|'continue'|null $onFailure what happens to a job after its last failure
     * @param 'body'|'event'|null $payload what is sent
     * @param 'POST'|'PUT'|'PATCH'|'DELETE'|'GET'|null $method
     * @param array<string, string>|null $headers of the calls; no answer repeats their values
     * @param 'replace'|'keep'|'fail'|'change'|IfExists|null $ifExists
     */
    public function subscribe(
        string $name,
        ?string $topic = null,
        ?string $url = null,
        ?int $order = null,
        int|float|string|\DateInterval|null $timeout = null,
        string|array|null $retry = null,
        ?int $concurrency = null,
        #[\SensitiveParameter] ?string $secret = null,
        ?string $expect = null,
        ?string $onFailure = null,
        ?string $payload = null,
        ?string $method = null,
        #[\SensitiveParameter] ?array $headers = null,
        IfExists|string|null $ifExists = null,
    ): void {
        $request = Fields::given([
            'name' => $name,
            'topic' => $topic,
            'url' => $url,
            'order' => $order,
            'timeout' => Duration::secondsOrNull($timeout),
            'retry' => Fields::retry($retry),
            'concurrency' => $concurrency,
            'secret' => $secret,
            'expect' => $expect,
            'on_failure' => $onFailure,
            'payload' => $payload,
            'method' => $method,
            'headers' => Fields::headers($headers),
            'if_exists' => Fields::value($ifExists),
        ]);
        // the server draws other delays each time: a repetition would take the first try's for another subscriber
        $isDrawn = is_array($retry) && (bool) ($retry['jitter'] ?? false);
        $isRival = ($request['if_exists'] ?? 'fail') === 'fail';
        $this->send(new Call('/subscribe', $request, self::nothing(...), repeatable: !$isDrawn || !$isRival));
    }

    /** Removes a subscriber. */
    public function unsubscribe(string $name): void
    {
        $this->send(
            new Call('/unsubscribe', ['name' => $name], self::nothing(...), repeatable: true, goneIsDone: true),
        );
    }

    /**
     * The subscribers of a topic, or of all topics, in the order in which they are called.
     *
     * @param bool $calls whether to tell how recent calls went
     *
     * @return list<Subscriber>
     */
    public function subscribers(?string $topic = null, bool $calls = false): array
    {
        $request = Fields::given(['topic' => $topic, 'calls' => $calls ?: null]);
        $read = static fn (mixed $data): array => Data::each($data, Subscriber::from(...));

        return $this->send(new Call('/subscribers', self::object($request), $read, repeatable: true));
    }

    /**
     * A page of the subscribers of a topic, or of all topics, in the order in which they are called.
     *
     * @param bool $calls whether to tell how recent calls went
     * @param string|null $cursor of the page before, for which the topic was the same
     */
    public function subscribersPage(
        ?string $topic = null,
        bool $calls = false,
        int $limit = 1000,
        ?string $cursor = null,
    ): SubscriberPage {
        $request = Fields::given(['topic' => $topic, 'calls' => $calls ?: null, 'limit' => $limit, 'cursor' => $cursor]);
        $read = static fn (mixed $data): SubscriberPage => SubscriberPage::from(Data::of($data));

        return $this->send(new Call('/subscribers', $request, $read, repeatable: true));
    }

    /** Holds the calls of a subscriber until it is resumed. */
    public function pauseSubscriber(string $name): void
    {
        $this->send(new Call('/pause-subscriber', ['name' => $name], self::nothing(...), repeatable: true));
    }

    /** Resumes the calls of a subscriber. */
    public function resumeSubscriber(string $name): void
    {
        $this->send(new Call('/resume-subscriber', ['name' => $name], self::nothing(...), repeatable: true));
    }

    /** Calls a webhook once with a made-up job. Throws WrongState if it has no URL. */
    public function trySubscriber(string $name, string $body = ''): Trial
    {
        $request = ['name' => $name, 'body' => Fields::body($body)];
        $read = static fn (mixed $data): Trial => Trial::from(Data::of($data));

        return $this->send(new Call('/try-subscriber', $request, $read, waitSeconds: 30.0)); // the longest that it waits
    }
}
