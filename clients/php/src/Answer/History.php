<?php

declare(strict_types=1);

namespace DelayQueue\Client\Answer;

use DelayQueue\Client\Internal\Data;

/** Figures per step of time, the first step at `start`; null = nothing is known. */
final class History
{
    /**
     * @param list<int|null> $pushed
     * @param list<int|null> $delivered
     * @param list<int|null> $finished
     * @param list<int|null> $failed
     * @param list<float|null> $latenessMean
     * @param list<float|null> $latenessWorst
     * @param list<int|null> $delayed
     * @param list<int|null> $ready
     * @param list<int|null> $reserved
     * @param list<int|null> $buried
     * @param list<HistoryMark> $marks
     */
    public function __construct(
        public readonly float $start,
        public readonly float $step,
        public readonly array $pushed,
        public readonly array $delivered,
        public readonly array $finished,
        public readonly array $failed,
        public readonly array $latenessMean,
        public readonly array $latenessWorst,
        public readonly array $delayed,
        public readonly array $ready,
        public readonly array $reserved,
        public readonly array $buried,
        public readonly array $marks,
    ) {
    }

    /** @internal */
    public static function from(Data $data): self
    {
        return new self(
            start: $data->float('start'),
            step: $data->float('step'),
            pushed: $data->counts('pushed'),
            delivered: $data->counts('delivered'),
            finished: $data->counts('finished'),
            failed: $data->counts('failed'),
            latenessMean: $data->figures('lateness_mean'),
            latenessWorst: $data->figures('lateness_worst'),
            delayed: $data->counts('delayed'),
            ready: $data->counts('ready'),
            reserved: $data->counts('reserved'),
            buried: $data->counts('buried'),
            marks: $data->list('marks', HistoryMark::from(...)),
        );
    }
}
