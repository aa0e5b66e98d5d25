-- What the two ends of a parcel share (send_off.lua, take_in.lua). Put after _life.lua.

local function tags_of(job) return options_of(job).tags or {} end

-- A key of another type than it should be stops the script here, where nothing has changed.
local function check_keys(job)
  call('LLEN', queue_key(job.topic))
  call('ZCARD', delay_key(job.topic, job.due))
  delay_check(job.topic)
  for _, key in ipairs({ reserved_key(job.topic), buried_key(job.topic), expire_key(job.topic), done_key(job.topic) }) do
    call('ZCARD', key)
  end
  for _, name in ipairs(tags_of(job)) do call('SCARD', tag_key(name)) end
end
