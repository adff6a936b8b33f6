// map: {}
const int column = threadIdx.x % kTile;
for (int row = threadIdx.x / kTile; row < kTile; row += kRowsPerStep) tile[row][column] += 1.0f;
ptx::fence_proxy_async(ptx::space_shared);  // what this thread wrote, for the engine to read
__syncthreads();                            // what the others wrote
if (threadIdx.x == 0) {
    const cuda::std::int32_t start[2] = {tileX, tileY};
    ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &outMap, start, tile);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});  // the tile must outlive the copy
}
