-- A name as a table, and back. Everything in this and the next files is the long way: apply.lua
-- runs it only for what it cannot decide by a look at a name's value.
--
-- A holder is an array, and so is a waiter; from 10 on and at 4 to 7 the two are the same.
local TOKEN, SINCE, EXPIRES, TTL, AT_LEAST, GRANT, MODE, STATE, REVOKED = 1, 2, 3, 4, 5, 6, 7, 8, 9
local TURN, STALE, HANDOFF, ALONE, CONVERTING = 1, 2, 3, 8, 9
local IF_BELOW, SET_ORDINAL, SET_TEXT, PREDICATE, OWNER, CHANNEL = 10, 11, 12, 13, 14, 15
local METADATA = 16

local HELD, HANDED, PARKED = 0, 1, 2

-- Held by row, asked by column, both in the order IS IX S U SIX X: the matrices of core/mode.cc.
local COMPATIBLE = '111110' .. '110000' .. '101100' .. '101000' .. '100000' .. '000000'
local COVERS = '100000' .. '110000' .. '101000' .. '101100' .. '111110' .. '111111'
local SIX = 4

local byte = string.byte

local function compatible(held, asked) return byte(COMPATIBLE, held * 6 + asked + 1) == 49 end

local function covers(held, asked) return byte(COVERS, held * 6 + asked + 1) == 49 end

local function converted(held, asked)
  if covers(held, asked) then return asked end
  return covers(asked, held) and asked or SIX
end

-- Ordinals are 64 bits wide and Lua's numbers are not: they stay decimal digits.
local function not_below(ordinal, bound)
  if #ordinal ~= #bound then return #ordinal > #bound end
  return ordinal >= bound
end

local states = {}

-- Any bytes may be there that somebody else wrote.
local function is_name(parts)
  return type(parts) == 'table' and #parts == 5 and type(parts[1]) == 'table' and
         type(parts[2]) == 'table' and type(parts[3]) == 'table' and
         type(parts[4]) == 'string' and type(parts[5]) == 'string'
end

local function state_of(n)
  local state = states[n]
  if state then return state end
  local value = batch.raw[n]
  if value then
    local kind = byte(value, 1)
    local fine, parts = pcall(cmsgpack.unpack, string.sub(value, 2))
    if kind ~= 48 and kind ~= 49 or not fine or not is_name(parts) then error('BADVALUE', 0) end
    state = {
      holders = parts[1], waiters = parts[2], tombstones = parts[3], ordinal = parts[4],
      text = parts[5]
    }
  else
    state = {holders = {}, waiters = {}, tombstones = {}, ordinal = '0', text = ''}
  end
  state.n = n
  state.dirty = batch.ends[n] ~= nil  -- a fast path has been here
  states[n] = state
  batch.long[n] = true
  return state
end

-- `dirty` is what must be kept; a name that is not `settled` may have somebody to promote.
local function changed(state)
  state.dirty = true
  state.settled = false
end

-- The value of a name, or false if nothing is left of it; and when it may be forgotten, or false.
local function value_of(state)
  local holders, waiters, tombstones = state.holders, state.waiters, state.tombstones
  local noted = state.ordinal ~= '0' or state.text ~= ''
  if #holders + #waiters + #tombstones == 0 and not noted then return false end
  local ends = 0
  for _, holder in ipairs(holders) do ends = math.max(ends, holder[EXPIRES]) end
  for _, waiter in ipairs(waiters) do ends = math.max(ends, waiter[STALE]) end
  for _, tombstone in ipairs(tombstones) do ends = math.max(ends, tombstone[2]) end
  if noted then ends = false end
  local sole = holders[1]
  if #holders == 1 and #waiters + #tombstones == 0 and not noted and sole[STATE] == HELD and
     not sole[REVOKED] then
    return batch.sole(sole[TOKEN], sole[SINCE], sole[EXPIRES], sole[TTL], sole[AT_LEAST],
                      sole[GRANT], sole[MODE], cmsgpack.pack(unpack(sole, IF_BELOW, METADATA))),
           ends
  end
  return '0' .. cmsgpack.pack({holders, waiters, tombstones, state.ordinal, state.text}), ends
end

local function wake(who) batch.wakes[#batch.wakes + 1] = {who[CHANNEL], who[GRANT]} end

-- [outcome, tokens, ordinal, text, holders, ends, message]
local function reply(outcome, fields)
  return '\151' .. cmsgpack.pack(outcome, fields.tokens or {}, fields.ordinal or '0',
                                 fields.text or '') ..
         (fields.holders or '\144') .. cmsgpack.pack(fields.ends or -1, fields.message or '')
end

local GRANTED, QUEUED, BUSY, SUPERSEDED, DENIED, DEADLOCK, LOST, DONE = 0, 1, 2, 3, 4, 5, 6, 7

local function lost(message) return reply(LOST, {message = message}) end
