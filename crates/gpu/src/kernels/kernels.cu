// The kernels that are measured, and the one that copies. `make.py` beside this file compiles them to kernels.ptx.
//
// Every kernel repeats its work `rounds` times in one launch, so that a launch lasts long enough for its start not to count.


extern "C" {

// Compute-bound, tensor cores: independent chains of 16x8x16 products in registers; 4 * 4096 FLOP a round and warp.
__global__ void tensor(float *out, unsigned rounds)
{
    unsigned a[4] = {0x3c003c00u, 0x3c003c00u, 0x3c003c00u, 0x3c003c00u}, b[2] = {0x00010001u, 0x00010001u};
    float sum[4][4] = {};
    for (unsigned round = 0; round < rounds; ++round) {
#pragma unroll
        for (int chain = 0; chain < 4; ++chain)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                         : "+f"(sum[chain][0]), "+f"(sum[chain][1]), "+f"(sum[chain][2]), "+f"(sum[chain][3])
                         : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    }
    float all = 0;
    for (int chain = 0; chain < 4; ++chain)
        for (int at = 0; at < 4; ++at)
            all += sum[chain][at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = all;
}

// Compute-bound, FP32 cores: eight independent chains of FMAs; 16 FLOP a round and thread.
__global__ void fma_loop(float *out, unsigned rounds)
{
    float sum[8], factor = 1.0f - 1e-7f * threadIdx.x;
    for (int chain = 0; chain < 8; ++chain)
        sum[chain] = chain;
    for (unsigned round = 0; round < rounds; ++round) {
#pragma unroll
        for (int chain = 0; chain < 8; ++chain)
            sum[chain] = __fmaf_rn(sum[chain], factor, 1.0f);
    }
    float all = 0;
    for (int chain = 0; chain < 8; ++chain)
        all += sum[chain];
    out[blockIdx.x * blockDim.x + threadIdx.x] = all;
}

// Memory-bound: a = b + s c over arrays much larger than the L2 cache, with `fmas` more operations per element, which
// sets the share of the memory's rate that the kernel needs. 48 bytes of memory traffic per element of four floats.
__global__ void triad(float4 *a, const float4 *b, const float4 *c, unsigned long long count, unsigned fmas, unsigned rounds)
{
    for (unsigned round = 0; round < rounds; ++round) {
        for (unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x; at < count;
             at += (unsigned long long)gridDim.x * blockDim.x) {
            float4 x = b[at], y = c[at], r;
            r.x = __fmaf_rn(y.x, 0.4f, x.x);
            r.y = __fmaf_rn(y.y, 0.4f, x.y);
            r.z = __fmaf_rn(y.z, 0.4f, x.z);
            r.w = __fmaf_rn(y.w, 0.4f, x.w);
            for (unsigned i = 0; i < fmas; ++i) {
                r.x = __fmaf_rn(r.x, 0.999f, x.x);
                r.y = __fmaf_rn(r.y, 0.999f, x.y);
                r.z = __fmaf_rn(r.z, 0.999f, x.z);
                r.w = __fmaf_rn(r.w, 0.999f, x.w);
            }
            a[at] = r;
        }
    }
}

// Latency-bound: each warp follows a chain of addresses through memory, one load after the other; a load a round.
__global__ void chase(unsigned *out, const unsigned *next, unsigned lines, unsigned rounds)
{
    unsigned at = (unsigned)(((unsigned long long)blockIdx.x * lines) / gridDim.x) * 32;
    for (unsigned round = 0; round < rounds; ++round)
        at = __ldcg(next + at);
    if (threadIdx.x == 0)
        out[blockIdx.x] = at;
}

// Moves bytes by the multiprocessors instead of a copy engine, as collectives do.
__global__ void copy(uint4 *to, const uint4 *from, unsigned long long count)
{
    unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long at = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    for (; at + 3 * step < count; at += 4 * step) {
        uint4 a = from[at], b = from[at + step], c = from[at + 2 * step], d = from[at + 3 * step];
        to[at] = a;
        to[at + step] = b;
        to[at + 2 * step] = c;
        to[at + 3 * step] = d;
    }
    for (; at < count; at += step)
        to[at] = from[at];
}

}
