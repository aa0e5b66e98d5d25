-- Ends jobs: their work is done.
-- requires  _end
-- flags  allow-oom
-- KEYS  tag, queue name
-- ARGV  sender, then for each job: id, receipt ("" = whatever its state), message
-- returns { { code per job }, { for each that ended the ms since it was handed out, -1 = it was not },
--           { topic, jobs that may go now, ... } }
-- keeps: with a receipt only the reservation that it names is finished.
return end_jobs(ARGV, 'finished')
