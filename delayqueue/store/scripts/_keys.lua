-- The keys of a bucket. KEYS[1] is the bucket's tag, e.g. {dq_bucket_1}; KEYS[2] the ready list's name, %s stands for the topic.
-- Every other key is derived from the tag (keys.py lists all), so a script touches one hash slot of a Redis Cluster.
-- KEYS[3] exists only for a client that is limited to some topics: the tag, and a JSON list of them (access.py).

-- The bucket of the call, and the names of its keys. A library of functions serves calls for several buckets.
local tag, queue_name, queue_prefix, queue_suffix
local JOBS, RUNS, ENDED, TIMERS, TOPICS, RATES, GHOSTS, BROKEN, REVISIONS, PRIORITIES, REMOVED
local AWAITED, CALLED_TOPICS

local function name_keys()
  JOBS, RUNS, ENDED = tag .. ':job', tag .. ':run', tag .. ':ended'
  TIMERS, TOPICS, RATES = tag .. ':timers', tag .. ':topics', tag .. ':rates'
  GHOSTS, BROKEN, PRIORITIES = tag .. ':ghosts', tag .. ':broken', tag .. ':priorities'
  REVISIONS, REMOVED = tag .. ':revisions', tag .. ':removed'
  AWAITED, CALLED_TOPICS = tag .. ':awaited', tag .. ':called_topics'
  local split = string.find(queue_name, '%s', 1, true)
  queue_prefix, queue_suffix = string.sub(queue_name, 1, split - 1), string.sub(queue_name, split + 2)
end

local function queue_key(topic) return queue_prefix .. topic .. queue_suffix end
local function reserved_key(topic) return tag .. ':reserved:' .. topic end
local function buried_key(topic) return tag .. ':buried:' .. topic end
local function expire_key(topic) return tag .. ':expire:' .. topic end
local function done_key(topic) return tag .. ':done:' .. topic end
local function tag_key(name) return tag .. ':tag:' .. name end
-- A key that few verbs need, by its name (keys.py).
local function named_key(name) return tag .. ':' .. name end
