-- Marks: where a reader of an index goes on in another call, whatever has come and gone meanwhile.
-- keeps: an entry that stays in its place is behind a mark if it was behind it when the mark was made. With ready lists, a reader may
--        meet an entry that is before the mark again: after another process of the store has taken over, all of them.
-- requires  _process, _ready

local marks = {}

-- As Redis sorts members of the same score, whatever the server's locale.
function marks.is_after(one, other)
  for i = 1, math.min(#one, #other) do
    local a, b = string.byte(one, i), string.byte(other, i)
    if a ~= b then return a > b end
  end
  return #one > #other
end

-- The mark behind an entry of a sorted set.
function marks.of(member, score) return int(score) .. ' ' .. member end

-- How many entries of a sorted set are not behind the mark.
function marks.rank(key, mark)
  local score, member = string.match(mark, '^(%d+) (.+)$')
  if not score then return 0 end
  local low, high = call('ZCOUNT', key, '-inf', '(' .. score), call('ZCOUNT', key, '-inf', score)
  while low < high do
    local middle = math.floor((low + high) / 2)
    if marks.is_after(call('ZRANGE', key, middle, middle)[1], member) then high = middle else low = middle + 1 end
  end
  return low
end

-- The mark before this place of a topic's ready list: how many entries had left the list by then tells how far others have
-- moved up at most.
function marks.in_list(topic, place)
  return int(place) .. ' ' .. (call('HGET', REMOVED, topic) or '0') .. '@' .. process()
end

-- The place in a topic's ready list that no entry behind the mark has passed.
function marks.place(topic, mark)
  local place, before, author = string.match(mark, '^(%d+) (%d+)@(%x+)$')
  if not place or author ~= process() then return 0 end
  local removed = tonumber(call('HGET', REMOVED, topic) or 0) - tonumber(before)
  -- less than before: the topic was forgotten, so the list was empty
  return removed < 0 and 0 or math.max(0, tonumber(place) - removed)
end
