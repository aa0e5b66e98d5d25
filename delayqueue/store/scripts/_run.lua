-- The run of a job that was handed out: "attempt step receipt started\n" and one note for each attempt that failed.
-- step counts the failures since the job was pushed, kicked or, as a dead letter, rescheduled: the retry schedule's position.
-- If subscribers have worked on the job, the head is "attempt step receipt started results_length\n", and the results,
-- a JSON array (see record.lua), come before the notes.
-- requires  _call

local unpack_run, pack_run, note, remark, note_progress, WORKER_NOTE
do  -- limits the scope of the rest
  local RUN = '^(%d+) (%d+) (%S+) (%d+) ?(%d*)\n()'

  function unpack_run(run)
    local attempt, step, receipt, started, results_length, at = string.match(run or '', RUN)
    if not attempt then return { attempt = 0, step = 0, receipt = '-', started = 0, results = '', notes = '' } end
    local notes_at = at + (tonumber(results_length) or 0)
    return {
      attempt = tonumber(attempt), step = tonumber(step), receipt = receipt, started = tonumber(started),
      results = string.sub(run, at, notes_at - 1), notes = string.sub(run, notes_at),
    }
  end

  function pack_run(run)
    local length = run.results ~= '' and ' ' .. #run.results or ''
    return int(run.attempt) .. ' ' .. int(run.step) .. ' ' .. run.receipt .. ' ' .. int(run.started) .. length .. '\n'
      .. run.results .. run.notes
  end

  -- A note: "attempt started ended length " message. The oldest go when all are longer than this.
  -- One of attempt 0 that ended at 0 is no message, but the name of the worker that had the attempt of the next note; versions that
  -- do not know that take it for a remark.
  local NOTES_LIMIT_BYTES = 8192
  WORKER_NOTE = '0 0 0 '

  local function add_note(run, attempt, started, message, worker)
    local who = worker ~= '' and WORKER_NOTE .. #worker .. ' ' .. worker or ''
    local notes = run.notes .. who .. int(attempt) .. ' ' .. int(started) .. ' ' .. int(now) .. ' ' .. #message .. ' ' .. message
    while #notes > NOTES_LIMIT_BYTES do
      local length, at = string.match(notes, '^%d+ %d+ %d+ (%d+) ()')
      notes = string.sub(notes, at + length)
    end
    run.notes = notes
  end

  -- The present attempt has failed. worker: the name of the one that had it, '' = unknown.
  function note(run, message, worker) add_note(run, run.attempt, run.started, message, worker) end

  -- A message about a job that is not reserved: attempt 0.
  function remark(run, message) add_note(run, 0, run.started, message, '') end

  -- How far the present attempt is, in hundredths of a percent; nil = only the message is new. A run has one such note, of attempt
  -- 0, and who had that attempt is told by the next note that has one. It began at a time that no job can begin at: 1 = the
  -- progress is unknown, else 2 more than it. Versions that do not know that take the note for a remark.
  local UNKNOWN, LATEST = 1, 10002

  function note_progress(run, progress, message)
    local notes, at, former = run.notes, 1, UNKNOWN
    while at <= #notes do
      local attempt, started, length, message_at = string.match(notes, '^(%d+) (%d+) %d+ (%d+) ()', at)
      if not attempt then break end
      local next_at, number = message_at + length, tonumber(started)
      if attempt == '0' and number >= UNKNOWN and number <= LATEST then
        if next_at > #notes then former = number end  -- of this attempt
        run.notes = string.sub(notes, 1, at - 1) .. string.sub(notes, next_at)
        break
      end
      at = next_at
    end
    add_note(run, 0, progress and progress + 2 or former, message, '')
  end
end
