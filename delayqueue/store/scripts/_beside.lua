-- Ids in the bucket of another id, whatever the number of buckets is: an id's bucket is the remainder of its CRC-32 (buckets.py), so
-- an id with the same CRC-32 is always beside it. Its last digits, each 0 to 7, are chosen for that: to flip a bit of them flips the
-- same bits of the CRC, whatever comes before, so the bits to flip are the solution of linear equations.
-- requires  _call

local id_beside
do
  local DIGITS, BITS = 12, 3
  local crcs, flips, pivots  -- made at the first use: by byte; { digit, bit of it } of a chosen bit; by leading bit of the CRC

  local function shift(crc, byte) return bit.bxor(bit.rshift(crc, 8), crcs[bit.band(bit.bxor(crc, byte), 255)]) end

  local function crc_of(text, crc)
    for i = 1, #text do crc = shift(crc, string.byte(text, i)) end
    return crc
  end

  local function leading_bit(crc)
    for i = 31, 0, -1 do
      if bit.band(crc, bit.lshift(1, i)) ~= 0 then return i end
    end
    return nil
  end

  -- Takes what is known of from the CRC and from the bits to flip. Returns what is left of the CRC, and the bits.
  local function reduce(crc, chosen)
    local leading = leading_bit(crc)
    while leading and pivots[leading] do
      crc, chosen = bit.bxor(crc, pivots[leading].crc), bit.bxor(chosen, pivots[leading].chosen)
      leading = leading_bit(crc)
    end
    return crc, chosen, leading
  end

  local function prepare()
    crcs, flips, pivots = {}, {}, {}
    for byte = 0, 255 do
      local crc = byte
      for _ = 1, 8 do crc = bit.bxor(bit.rshift(crc, 1), bit.band(crc, 1) == 1 and 0xEDB88320 or 0) end
      crcs[byte] = crc
    end
    for place = 0, DIGITS * BITS - 1 do
      local digit, at = math.floor(place / BITS), place % BITS  -- 0 = the last digit
      local crc = crcs[bit.lshift(1, at)]
      for _ = 1, digit do crc = shift(crc, 0) end
      local rest, chosen, leading = reduce(crc, bit.lshift(1, #flips))
      if leading then  -- it flips what those before cannot
        pivots[leading] = { crc = rest, chosen = chosen }
        flips[#flips + 1] = { DIGITS - digit, bit.lshift(1, at) }
      end
    end
  end

  -- `head` and the digits with which it is in the bucket of `id`.
  function id_beside(head, id)
    if not crcs then prepare() end
    local wanted = bit.bxor(crc_of(id, -1), crc_of(head .. string.rep('0', DIGITS), -1))
    local _, chosen = reduce(wanted, 0)
    local digits = {}
    for i = 1, DIGITS do digits[i] = 0 end
    for i, flip in ipairs(flips) do
      if bit.band(chosen, bit.lshift(1, i - 1)) ~= 0 then digits[flip[1]] = digits[flip[1]] + flip[2] end
    end
    return head .. table.concat(digits)
  end
end
