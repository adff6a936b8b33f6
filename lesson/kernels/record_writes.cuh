// SPDX-License-Identifier: MIT
//
// An `out` that remembers its writers.
//
// The lesson's plain-store snippet says `out[i] = value`. Compiled with a float* it stores; compiled
// with the RecordedOut below, unchanged, it stores and also notes which block and thread wrote
// element i, and counts the writes. So the picture "which tile wrote where" is measured by the very
// statement that it is about.
//
// Blocks and threads are numbered x first, then y, then z. When several threads write one element,
// the last one's number stays (block and thread may then be of two different writers): the count,
// which is atomic, says that it happened.

#pragma once

namespace lesson {

// One element of the output, as the left side of an assignment.
struct RecordedElement {
    float* value;
    unsigned int* writerBlock;
    unsigned int* writerThread;
    unsigned int* writeCount;

    __device__ const RecordedElement& operator=(float newValue) const
    {
        *value = newValue;
        *writerBlock = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
        *writerThread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
        atomicAdd(writeCount, 1u);
        return *this;
    }

    // `out[i] = out[j]` copies the value, not the four pointers.
    __device__ const RecordedElement& operator=(const RecordedElement& other) const
    {
        return *this = static_cast<float>(other);
    }

    __device__ const RecordedElement& operator+=(float addend) const
    {
        return *this = *value + addend;
    }

    __device__ operator float() const { return *value; }
};

// Stands in for `float* out`. Elements are indexed, dereferenced and offset as those of a pointer.
struct RecordedOut {
    float* values;
    unsigned int* writerBlocks;
    unsigned int* writerThreads;
    unsigned int* writeCounts;

    template <class Index>
    __device__ RecordedElement operator[](Index i) const
    {
        return {values + i, writerBlocks + i, writerThreads + i, writeCounts + i};
    }

    template <class Offset>
    __device__ RecordedOut operator+(Offset offset) const
    {
        return {values + offset, writerBlocks + offset, writerThreads + offset,
                writeCounts + offset};
    }

    __device__ RecordedElement operator*() const { return (*this)[0]; }
};

}  // namespace lesson
