-- Acquire, claim and renew: core/acquire.cc and core/hold.cc.

local function make_change(state, ordinal, text)
  if ordinal then state.ordinal = ordinal end
  if text then state.text = text end
  if ordinal or text then changed(state) end
end

local function superseded(state, if_below)
  return if_below and not_below(state.ordinal, if_below)
end

local function not_holding(q)
  for _, state in ipairs(q.states) do
    local holder = find_holder(state, q.grant)
    if not holder or holder[EXPIRES] <= now or holder[STATE] == PARKED then
      return 'the grant has ended'
    end
    if holder[REVOKED] then return 'revoked: ' .. holder[REVOKED] end
  end
end

-- at_least_for keeps the name taken even if its holder dies before.
local function first_expiry(who) return now + math.max(who[TTL], who[AT_LEAST]) * 1000 end

local function extend(state, holder)
  holder[EXPIRES] = math.max(holder[EXPIRES], now + holder[TTL] * 1000)
  state.dirty = true
end

local function granted(q, ordinal, text)
  local tokens = {}
  for i, state in ipairs(q.states) do tokens[i] = find_holder(state, q.grant)[TOKEN] end
  return reply(GRANTED, {tokens = tokens, ordinal = ordinal, text = text})
end

local function take(q, who)
  need_tokens(q)
  local first = q.states[1]
  local ordinal, text = first.ordinal, first.text
  for i, state in ipairs(q.states) do
    erase_waiter(state, q.grant, false)
    table.insert(state.holders, {
      batch.next(state.n), now, first_expiry(who), who[TTL], who[AT_LEAST], q.grant, q.modes[i],
      HELD, false, unpack(who, IF_BELOW, METADATA)
    })
    changed(state)
  end
  make_change(first, who[SET_ORDINAL], who[SET_TEXT])
  return granted(q, ordinal, text)
end

-- The grant is there: a promoted waiter comes for it, or a request is repeated. Either way its time
-- starts again.
local function take_again(q)
  local why = not_holding(q)
  if why then return lost(why) end
  local first = q.states[1]
  local holder = find_holder(first, q.grant)
  local ordinal, text = first.ordinal, first.text
  if holder[STATE] == HANDED then
    if superseded(first, holder[IF_BELOW]) then
      erase_holder(first, q.grant)
      changed(first)
      settle_all(q)
      return reply(SUPERSEDED, {})
    end
    holder[STATE] = HELD
    holder[SINCE] = now
    holder[EXPIRES] = first_expiry(holder)
    make_change(first, holder[SET_ORDINAL], holder[SET_TEXT])
  end
  for _, state in ipairs(q.states) do extend(state, find_holder(state, q.grant)) end
  return granted(q, ordinal, text)
end

local function any_held(q)
  for _, state in ipairs(q.states) do
    if find_holder(state, q.grant) then return true end
  end
end

local function leave_queues(q)
  for _, state in ipairs(q.states) do erase_waiter(state, q.grant, false) end
  settle_all(q)
  return reply(SUPERSEDED, {})
end

-- A place in every queue of the request, all with one turn. Repeating it only refreshes.
local function queue_up(q, who)
  local stale = now + q.ticket * 1000
  local turn
  for _, state in ipairs(q.states) do
    local own = find_waiter(state, q.grant, false)
    if own then turn = own[TURN] end
  end
  if not turn then
    need_tokens(q)
    turn = batch.turn(q.states)
  end
  for i, state in ipairs(q.states) do
    local own = find_waiter(state, q.grant, false)
    if own then
      own[STALE] = stale
      state.dirty = true
    else
      insert_waiter(state, {
        turn, stale, q.handoff, who[TTL], who[AT_LEAST], q.grant, q.modes[i], #q.states == 1,
        false, unpack(who, IF_BELOW, METADATA)
      })
    end
  end
end

local function acquire(q)
  settle_all(q)
  local first = q.states[1]
  for _, tombstone in ipairs(first.tombstones) do
    if tombstone[1] == q.grant then return lost('cancelled before it arrived') end
  end
  if any_held(q) then return take_again(q) end
  local who = {false, false, false, q.ttl, q.at_least, q.grant, 0, false, false,
               cmsgpack.unpack(q.claimant)}
  if superseded(first, who[IF_BELOW]) then return leave_queues(q) end
  local obstacle = obstacle_for(q)
  if not obstacle.blocked then return take(q, who) end
  if q.ticket <= 0 then return blocked_reply(BUSY, obstacle) end
  queue_up(q, who)
  return blocked_reply(QUEUED, obstacle)
end

local function claim(q)
  settle_all(q)
  if any_held(q) then return take_again(q) end
  for _, state in ipairs(q.states) do
    if not find_waiter(state, q.grant, false) then return lost('no longer in the queue') end
  end
  local own = find_waiter(q.states[1], q.grant, false)
  if superseded(q.states[1], own[IF_BELOW]) then return leave_queues(q) end
  local obstacle = obstacle_for(q)
  if not obstacle.blocked then return take(q, own) end
  if q.ticket > 0 then
    for _, state in ipairs(q.states) do
      find_waiter(state, q.grant, false)[STALE] = now + q.ticket * 1000
      state.dirty = true
    end
  end
  return blocked_reply(QUEUED, obstacle)
end

-- Touches nothing but its own holders.
local function renew(q)
  local why = not_holding(q)
  if why then return lost(why) end
  for _, state in ipairs(q.states) do
    if find_holder(state, q.grant)[STATE] == HANDED then return lost('not claimed yet') end
  end
  local first = q.states[1]
  local ordinal, text = first.ordinal, first.text
  for _, state in ipairs(q.states) do extend(state, find_holder(state, q.grant)) end
  make_change(first, q.set_ordinal, q.set_text)
  return granted(q, ordinal, text)
end
