// map: {"dims": [200, 120], "strides_bytes": [800]}
auto token = ask(&tile[0][0], &map, tileX, tileY, bar, sizeof(tile));  // an edge box counts in full
bar.wait(cuda::std::move(token));
const int column = threadIdx.x % kTile;
for (int step = 0; step < kTile; step += kRowsPerStep) {
    const int row = step + threadIdx.x / kTile;
    if (tileX + column < kWidth && tileY + row < kHeight) {
        out[(tileY + row) * kWidth + (tileX + column)] = tile[row][column] + 1.0f;
    }
}
