// map: {}
if (threadIdx.x == 0) for (int n = 0; n < kStages; ++n) fetch(n, n);
for (int n = 0; n < kTiles; ++n) {
    const int stage = n % kStages;
    waitFor(stage, n / kStages % 2);  // each stage has phases of its own
    store(stage, n);
    __syncthreads();  // nobody reads the stage any more, so it may be filled again
    if (threadIdx.x == 0 && n + kStages < kTiles) fetch(stage, n + kStages);
}
