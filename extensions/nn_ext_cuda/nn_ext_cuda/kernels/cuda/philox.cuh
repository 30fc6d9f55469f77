// Philox4x32-10 (J. K. Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC'11), the same bits as every backend
// draws: element i is lane i % 4 of the block with the counter (i / 4, counter) under the key (seed). `key` holds seed and
// counter on the device, so that a recorded graph draws new numbers at each replay.

struct Words { uint32 lane[4]; };

__device__ Words philox(const uint64* key, uint64 block) {
  uint32 c0 = uint32(block), c1 = uint32(block >> 32), c2 = uint32(key[1]), c3 = uint32(key[1] >> 32);
  uint32 k0 = uint32(key[0]), k1 = uint32(key[0] >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint32 high0 = __umulhi(0xD2511F53u, c0), low0 = 0xD2511F53u * c0;
    const uint32 high1 = __umulhi(0xCD9E8D57u, c2), low1 = 0xCD9E8D57u * c2;
    c0 = high1 ^ c1 ^ k0;
    c1 = low1;
    c2 = high0 ^ c3 ^ k1;
    c3 = low0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}
