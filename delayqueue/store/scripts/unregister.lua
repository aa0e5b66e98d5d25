-- Removes a subscriber, a schedule or a note.
-- requires  _registry
-- flags  allow-oom
-- waits  changes
-- ARGV  kind (subscribers | schedules | notes), name, definition ("" = any that was registered at run time)
-- returns { code }: WRONG_STATE if a config file declares it
-- keeps: with a definition, only that one is removed, whoever declared it.

return function(ARGV)
  local kind, name, definition = ARGV[1], ARGV[2], ARGV[3]

  local old = call('HGET', named_key(kind), name)
  if not old or definition ~= '' and old ~= definition then return { NOT_FOUND } end
  if definition == '' and is_declared(old) then return { WRONG_STATE } end
  forget_registered(kind, name)
  call('HINCRBY', REVISIONS, kind, 1)
  return { OK }
end
