-- Which process of the store this is: a cursor of SCAN, and a place in a list, mean nothing to another one.
-- requires  _call

local process, signed, own_cursor
do
  local id

  -- A store that does not tell is taken for the same one always.
  function process()
    local told = id or redis.pcall('INFO', 'server')
    id = id or type(told) == 'string' and string.match(told, 'run_id:(%x+)') or '0'
    return id
  end

  -- A cursor of SCAN, and whose it is; "0" stays "0".
  function signed(cursor) return cursor == '0' and '0' or cursor .. '@' .. process() end

  -- The cursor that was signed; "0" if another process has signed it.
  function own_cursor(written)
    local cursor, author = string.match(written, '^(%d+)@(%x+)$')
    return cursor and author == process() and cursor or '0'
  end
end
