-- What every load shares: settings, clock, ids, bodies, counting, and the line of figures at the end.
-- Settings come as environment variables, because wrk gives a script no named arguments.
local ffi = require("ffi")

ffi.cdef [[
  typedef struct { long seconds; long micros; } bench_time;
  int gettimeofday(bench_time *now, void *zone);
  int getpid(void);
  int kill(int pid, int signal);
]]

local SIGINT = 2
local clock = ffi.new("bench_time")
local stopped = false
local threads = {} -- filled in wrk's main state only

-- wrk's main state reads these from each thread's own state, which reaches globals only
thread_id, jobs, errors, first_us, last_us, late_ms = 0, 0, 0, 0, 0, {}

local bench = {}

function bench.number(name)
  return tonumber(os.getenv(name) or 0)
end

bench.topic = os.getenv("TOPIC")
bench.protocol = dofile("protocols.lua")[os.getenv("PROTOCOL")]

local budget_jobs = bench.number("COUNT") -- 0: until the time is over
local run = os.getenv("RUN") -- makes the ids of this load different from all others

-- Unix time in microseconds.
function bench.now_us()
  ffi.C.gettimeofday(clock, nil)
  return tonumber(clock.seconds) * 1000000 + tonumber(clock.micros)
end

function bench.seed()
  math.randomseed(bench.now_us() % 1000000007 + thread_id)
end

-- Starts the time that the rate is counted over, once.
function bench.begin()
  if first_us == 0 then first_us = bench.now_us() end
end

local function stop()
  stopped = true
  wrk.thread:stop()
  ffi.C.kill(ffi.C.getpid(), SIGINT) -- ends the sleep of wrk's main thread; it still reports
end

-- Counts jobs done and answers refused; ends the load when its budget is spent.
function bench.count(done, refused)
  if stopped then return end
  jobs, errors, last_us = jobs + done, errors + refused, bench.now_us()
  if budget_jobs > 0 and jobs + errors >= budget_jobs then stop() end
end

local made = 0

function bench.next_id()
  made = made + 1
  return string.format("%s-%d-%d", run, thread_id, made)
end

function setup(thread)
  thread:set("thread_id", #threads)
  threads[#threads + 1] = thread
end

local function percentile(sorted, share)
  return sorted[math.max(1, math.ceil(#sorted * share / 100))]
end

local function curve(sorted)
  local points = {}
  for _, share in ipairs({0, 1, 5, 10, 25, 50, 75, 90, 95, 99, 99.9, 100}) do
    points[#points + 1] = string.format("[%g,%g]", share, percentile(sorted, share))
  end
  return table.concat(points, ",")
end

function done(summary, latency)
  local total, refused, first, last, late = 0, 0, math.huge, 0, {}
  for _, thread in ipairs(threads) do
    total, refused = total + thread:get("jobs"), refused + thread:get("errors")
    if thread:get("first_us") > 0 then first = math.min(first, thread:get("first_us")) end
    last = math.max(last, thread:get("last_us"))
    for _, ms in ipairs(thread:get("late_ms")) do late[#late + 1] = ms end
  end
  table.sort(late)
  local broken = summary.errors.connect + summary.errors.read + summary.errors.write
  io.write(string.format(
    'BENCH {"jobs":%d,"refused":%d,"broken":%d,"began_at":%.6f,"ended_at":%.6f,"answer_ms_p99":%.3f,"late_ms":[%s]}\n',
    total, refused, broken, math.min(first, last) / 1e6, last / 1e6, latency:percentile(99) / 1000,
    #late > 0 and curve(late) or ""))
end

return bench
