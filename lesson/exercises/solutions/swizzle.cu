// map: {"swizzle": "128B"}
for (int column = threadIdx.x / kTile; column < kTile; column += kColumnsPerStep) {
    const int piece = (column / 4) ^ (row % 8);  // 16-byte pieces trade places within a row
    const int place = piece * 4 + column % 4;
    out[(tileX + column) * kHeight + (tileY + row)] = tile[row][place] + 1.0f;
}
