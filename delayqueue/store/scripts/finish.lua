-- Ends jobs: their work is done.
-- requires  _end
-- flags  allow-oom
-- waits  changes
-- ARGV  for each job: id, receipt ("" = in any state), message
-- returns a code for each
-- keeps: with a receipt only the reservation that it names is finished.

return function(ARGV)
  return end_jobs(ARGV, 'finished', 'finished')
end
