-- Convert, release, cancel, break and get: core/hold.cc and core/end.cc.

local function waits_for(state, other, held)
  local waiter = find_waiter(state, other[GRANT], true)
  return waiter and not compatible(held, waiter[MODE])
end

local function queue_conversion(q, targets)
  local turn
  for i, state in ipairs(q.states) do
    local holder = find_holder(state, q.grant)
    if not covers(holder[MODE], targets[i]) then
      local own = find_waiter(state, q.grant, true)
      erase_waiter(state, q.grant, true)
      if not own then turn = turn or batch.turn(q.states) end
      insert_waiter(state, {
        own and own[TURN] or turn, now + q.ticket * 1000, 0, holder[TTL], holder[AT_LEAST],
        q.grant, targets[i], false, true, unpack(holder, IF_BELOW, METADATA)
      })
    end
  end
end

-- Ahead of the queue: only the other holders are asked.
local function convert(q)
  settle_all(q)
  local why = not_holding(q)
  if why then return lost(why) end
  local targets, obstacle, deadlock, upwards = {}, new_obstacle(), false, false
  for i, state in ipairs(q.states) do
    local own = find_holder(state, q.grant)
    if own[STATE] == HANDED then return lost('not claimed yet') end
    targets[i] = converted(own[MODE], q.modes[i])
    if not covers(own[MODE], targets[i]) then
      upwards = true
      for _, other in ipairs(state.holders) do
        if other[GRANT] ~= q.grant and not compatible(other[MODE], targets[i]) then
          add_holder(obstacle, other)
          deadlock = deadlock or waits_for(state, other, own[MODE])
        end
      end
    end
  end
  if deadlock then return blocked_reply(DEADLOCK, obstacle) end
  if obstacle.blocked and q.ticket <= 0 then return blocked_reply(BUSY, obstacle) end
  if upwards then need_tokens(q) end
  if obstacle.blocked then
    queue_conversion(q, targets)
    return blocked_reply(QUEUED, obstacle)
  end
  local first = q.states[1]
  local ordinal, text = first.ordinal, first.text
  for i, state in ipairs(q.states) do
    local own = find_holder(state, q.grant)
    -- A stronger hold is a new hold: its token must be above those that others had beside it.
    if not covers(own[MODE], targets[i]) then own[TOKEN] = batch.next(state.n) end
    own[MODE] = targets[i]
    extend(state, own)
    changed(state)
    erase_waiter(state, q.grant, true)
  end
  local answer = granted(q, ordinal, text)
  settle_all(q)
  return answer
end

local function live(state, grant)
  local holder = find_holder(state, grant)
  return holder and holder[STATE] ~= PARKED and holder or nil
end

-- Ends the grant on one name, or leaves it parked until its at-least-for time is over.
local function end_hold(state, holder)
  local at_least_until = holder[SINCE] + holder[AT_LEAST] * 1000
  if holder[STATE] == HELD and at_least_until > now then
    holder[STATE] = PARKED
    holder[EXPIRES] = at_least_until
  else
    erase_holder(state, holder[GRANT])
  end
  erase_waiter(state, holder[GRANT], true)
  changed(state)
end

-- Moves the first waiter of that owner to the front: turn 0 is ahead of every ordinary one.
local function put_first(state, owner)
  for _, waiter in ipairs(state.waiters) do
    if waiter[ALONE] and not waiter[CONVERTING] and waiter[OWNER] == owner then
      erase_waiter(state, waiter[GRANT], false)
      waiter[TURN] = 0
      insert_waiter(state, waiter)
      return true
    end
  end
end

local function release(q)
  settle_all(q)
  local first = q.states[1]
  if q.to ~= '' then
    if not live(first, q.grant) then return lost('the grant has ended') end
    if not put_first(first, q.to) then
      return reply(DENIED, {message = "nobody of '" .. q.to .. "' waits"})
    end
  end
  if live(first, q.grant) then make_change(first, q.set_ordinal, q.set_text) end
  local all = true
  for _, state in ipairs(q.states) do
    local holder = live(state, q.grant)
    if holder then end_hold(state, holder) else all = false end
  end
  settle_all(q)
  return all and reply(DONE, {}) or lost('the grant has ended')
end

local function cancel(q)
  settle_all(q)
  for _, state in ipairs(q.states) do
    erase_waiter(state, q.grant, true)
    if not q.converting then
      erase_waiter(state, q.grant, false)
      -- Nobody ever worked under a grant that is cancelled, so at_least_for does not keep it.
      if live(state, q.grant) then
        erase_holder(state, q.grant)
        changed(state)
      end
    end
  end
  if not q.converting and q.tombstone > 0 then
    local first = q.states[1]
    first.tombstones = kept(first.tombstones, function(t) return t[1] == q.grant end)
    table.insert(first.tombstones, {q.grant, now + q.tombstone * 1000})
    changed(first)
  end
  settle_all(q)
  return reply(DONE, {})
end

local function break_holders(q)
  settle_all(q)
  local state = q.states[1]
  local function is_hit(holder) return q.grant == '' or holder[GRANT] == q.grant end
  local hit = kept(state.holders, function(holder) return not is_hit(holder) end)
  local shown = cmsgpack.pack(hit)
  for _, holder in ipairs(hit) do
    holder[REVOKED] = q.reason
    wake(holder)
    changed(state)
  end
  if q.immediately and #hit > 0 then
    state.holders = kept(state.holders, is_hit)
    settle_all(q)
  end
  return reply(DONE, {holders = shown})
end

-- The value as it is; the client describes it.
local function look(q) return '\146\008' .. cmsgpack.pack((value_of(q.states[1])) or '') end

local verbs = {
  [0] = acquire, [1] = claim, [2] = renew, [3] = convert, [4] = release, [5] = cancel,
  [6] = break_holders, [7] = look
}

-- What each verb says behind [verb, grant, names]: see apply_arguments.cc.
local function read(r)
  local verb = r[1]
  local q = {grant = r[2], names = type(r[3]) == 'table' and r[3] or {r[3]}}
  if verb == 0 or verb == 1 or verb == 3 then
    q.modes = type(r[4]) == 'table' and r[4] or {r[4]}
    q.version, q.ticket = r[5], r[6]
  end
  if verb == 0 then
    q.handoff, q.ttl, q.at_least, q.claimant = r[7], r[8], r[9], r[11]
  elseif verb == 2 or verb == 4 then
    q.set_ordinal, q.set_text, q.to = r[5], r[6], r[7]
  elseif verb == 5 then
    q.tombstone, q.converting = r[4], r[5]
  elseif verb == 6 then
    q.reason, q.immediately = r[4], r[5]
  end
  return q
end

local function denied(q)
  return reply(DENIED, {
    message = 'the store has schema version ' .. batch.version .. ', this client ' .. q.version
  })
end

local function answer(r)
  local q = read(r)
  if q.version and q.version ~= batch.version then return denied(q) end
  q.states = {}
  for i, n in ipairs(q.names) do
    if batch.foreign[n] then error('WRONGTYPE', 0) end
    q.states[i] = state_of(n)
  end
  local made = verbs[r[1]](q)
  if batch.schema_at and states[batch.schema_at] then
    batch.version = states[batch.schema_at].ordinal
  end
  return made
end

local function each_changed(write)
  for n, state in pairs(states) do
    if state.dirty then write(n, value_of(state)) end
  end
end

return answer, each_changed
