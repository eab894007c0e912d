// What the libraries do more slowly: Winograd's convolution, and the normalization of filter responses in one go.
//
// The 3x3 convolution with stride 1 and padding 1 is F(4x4, 3x3): 36 products where the direct way has 144. Maps are
// channels-last float32 with a side divisible by 4. A block of 6x6 tiles is transformed (V = B^T d B), multiplied
// by the transformed weights in 36 small matrix products, and transformed back (Y = A^T M A), with bias and ReLU.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

#if defined(__AVX512F__)
constexpr int LANES = 16, ROWS = 12;
#else
constexpr int LANES = 8, ROWS = 6;
#endif
constexpr int SLICE = 2 * LANES;  // output channels at a time: ROWS x 2 sums stay in the registers
constexpr int BLOCK = 2 * ROWS;   // tiles at a time: their V stays in the cache

typedef float Vector __attribute__((vector_size(4 * LANES)));
typedef float Unaligned __attribute__((vector_size(4 * LANES), aligned(4)));

inline Vector load(const float* from) { return *reinterpret_cast<const Unaligned*>(from); }
inline void store(float* to, Vector value) { *reinterpret_cast<Unaligned*>(to) = value; }

// B^T a, for six vectors `step` apart
inline void transform_input(const Vector* a, int step, Vector* out) {
    const Vector a0 = a[0], a1 = a[step], a2 = a[2 * step], a3 = a[3 * step], a4 = a[4 * step], a5 = a[5 * step];
    const Vector even = a4 - 4.f * a2, odd = a3 - 4.f * a1, even2 = a4 - a2, odd2 = 2.f * (a3 - a1);
    out[0] = 4.f * a0 - 5.f * a2 + a4;
    out[step] = even + odd;
    out[2 * step] = even - odd;
    out[3 * step] = even2 + odd2;
    out[4 * step] = even2 - odd2;
    out[5 * step] = 4.f * a1 - 5.f * a3 + a5;
}

// A^T m, for six vectors `step` apart; the four results have the same distance
inline void transform_output(const Vector* m, int step, Vector* out) {
    const Vector sum = m[step] + m[2 * step], difference = m[step] - m[2 * step];
    const Vector sum2 = m[3 * step] + m[4 * step], difference2 = m[3 * step] - m[4 * step];
    const Vector last = m[5 * step];
    out[0] = m[0] + sum + sum2;
    out[step] = difference + 2.f * difference2;
    out[2 * step] = sum + 4.f * sum2;
    out[3 * step] = difference + 8.f * difference2 + last;
}

// m (ROWS, SLICE) = v (ROWS, channels) u (channels, SLICE)
inline void multiply(const float* v, const float* u, float* m, int channels) {
    Vector sum[ROWS][2] = {};
    for (int c = 0; c < channels; ++c) {
        const Vector left = load(u + c * SLICE), right = load(u + c * SLICE + LANES);
#pragma GCC unroll 12
        for (int row = 0; row < ROWS; ++row) {
            const float value = v[row * channels + c];
            sum[row][0] += value * left;
            sum[row][1] += value * right;
        }
    }
#pragma GCC unroll 12
    for (int row = 0; row < ROWS; ++row) {
        store(m + row * SLICE, sum[row][0]);
        store(m + row * SLICE + LANES, sum[row][1]);
    }
}

struct Convolution {
    const float *x, *u, *bias, *zeros;
    float *y, *v, *m;
    int side, in, out;
    bool relu;

    // The index of the pixel (row, column) within the tile, counted over all maps
    size_t pixel(long tile, int row, int column) const {
        const int across = side / 4, within = int(tile % (across * across));
        const size_t map = size_t(tile / (across * across));
        return (map * side + within / across * 4 + row) * side + within % across * 4 + column;
    }

    void read(long tile, int place) const {
        const int across = side / 4, within = int(tile % (across * across));
        const int top = within / across * 4, left = within % across * 4;
        const float* pixels[36];
        for (int k = 0; k < 36; ++k) {
            const int row = k / 6 - 1, column = k % 6 - 1;
            const bool inside = top + row >= 0 && top + row < side && left + column >= 0 && left + column < side;
            pixels[k] = inside ? x + pixel(tile, row, column) * in : zeros;
        }
        for (int c = 0; c < in; c += LANES) {
            Vector d[36];
            for (int k = 0; k < 36; ++k) d[k] = load(pixels[k] + c);
            for (int k = 0; k < 6; ++k) transform_input(d + k, 6, d + k);
            for (int k = 0; k < 6; ++k) transform_input(d + 6 * k, 1, d + 6 * k);
            for (int k = 0; k < 36; ++k) store(v + (size_t(k) * BLOCK + place) * in + c, d[k]);
        }
    }

    void multiply_block(int slice, int count) const {
        for (int k = 0; k < 36; ++k) {
            const float* weights = u + (size_t(k) * (out / SLICE) + slice) * in * SLICE;
            for (int row = 0; row < count; row += ROWS)  // rows past the last tile hold old numbers, which nobody reads
                multiply(v + (size_t(k) * BLOCK + row) * in, weights, m + (size_t(k) * BLOCK + row) * SLICE, in);
        }
    }

    void write(long tile, int place, int slice) const {
        for (int c = 0; c < SLICE; c += LANES) {
            const int channel = slice * SLICE + c;
            const Vector shift = load(bias + channel), zero = {};
            Vector d[36];
            for (int k = 0; k < 36; ++k) d[k] = load(m + (size_t(k) * BLOCK + place) * SLICE + c);
            for (int k = 0; k < 6; ++k) transform_output(d + k, 6, d + k);
            for (int k = 0; k < 4; ++k) transform_output(d + 6 * k, 1, d + 6 * k);
            for (int k = 0; k < 16; ++k) {
                const Vector value = d[k / 4 * 6 + k % 4] + shift;
                store(y + pixel(tile, k / 4, k % 4) * out + channel, relu ? (value > zero ? value : zero) : value);
            }
        }
    }

    void run(long tiles) const {
        for (long first = 0; first < tiles; first += BLOCK) {
            const int count = int(std::min(long(BLOCK), tiles - first));
            for (int place = 0; place < count; ++place) read(first + place, place);
            for (int slice = 0; slice < out / SLICE; ++slice) {
                multiply_block(slice, count);
                for (int place = 0; place < count; ++place) write(first + place, place, slice);
            }
        }
    }
};

typedef uint16_t Half;  // the upper half of a float32: bfloat16

inline float widen(float value) { return value; }
inline float widen(Half value) {
    const uint32_t bits = uint32_t(value) << 16;
    float wide;
    std::memcpy(&wide, &bits, sizeof wide);
    return wide;
}
inline void narrow(float value, float& to) { to = value; }
inline void narrow(float value, Half& to) {  // to the nearest, ties to even
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    to = Half((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// y = max(x * weight / sqrt(mean x^2 + eps) + bias, tau), SLICE channels of one map: the second pass finds it in the cache
template <class In, class Out>
void respond(const In* x, Out* y, const float* weight, const float* bias, const float* tau, int pixels, int channels,
             float eps) {
    for (int first = 0; first < channels; first += SLICE) {
        float squares[4][SLICE] = {};  // four sums: each waits for its own additions only
        for (int p = 0; p + 4 <= pixels; p += 4)
            for (int k = 0; k < 4; ++k)
                for (int c = 0; c < SLICE; ++c) {
                    const float value = widen(x[size_t(p + k) * channels + first + c]);
                    squares[k][c] += value * value;
                }
        float scale[SLICE], shift[SLICE], least[SLICE];
        for (int c = 0; c < SLICE; ++c) {
            for (int p = pixels / 4 * 4; p < pixels; ++p) {
                const float value = widen(x[size_t(p) * channels + first + c]);
                squares[0][c] += value * value;
            }
            const float sum = squares[0][c] + squares[1][c] + squares[2][c] + squares[3][c];
            scale[c] = weight[first + c] / std::sqrt(sum / pixels + eps);
            shift[c] = bias[first + c];
            least[c] = tau[first + c];
        }
        for (int p = 0; p < pixels; ++p)
#pragma GCC ivdep  // x and y are the same or apart
            for (int c = 0; c < SLICE; ++c) {
                const float value = widen(x[size_t(p) * channels + first + c]) * scale[c] + shift[c];
                narrow(value < least[c] ? least[c] : value, y[size_t(p) * channels + first + c]);
            }
    }
}

template <class In, class Out>
void respond_all(const void* x, void* y, const float* weight, const float* bias, const float* tau, int maps, int pixels,
                 int channels, float eps) {
    const size_t step = size_t(pixels) * channels;
    for (int map = 0; map < maps; ++map)
        respond(static_cast<const In*>(x) + map * step, static_cast<Out*>(y) + map * step, weight, bias, tau, pixels,
                channels, eps);
}

}  // namespace

extern "C" int lanes() { return LANES; }

// x (maps, side, side, in), u (36, out / SLICE, in, SLICE), bias (out), y (maps, side, side, out)
extern "C" void convolve(const float* x, const float* u, const float* bias, float* y, int maps, int side, int in, int out,
                         int relu) {
    const size_t v = size_t(36) * BLOCK * in, m = size_t(36) * BLOCK * SLICE;
    static thread_local std::vector<float> memory;
    memory.assign(v + m + in, 0.f);
    float* start = memory.data();
    Convolution{x, u, bias, start + v + m, y, start, start + v, side, in, out, relu != 0}.run(
        long(maps) * (side / 4) * (side / 4));
}

// x and y (maps, pixels, channels), each float32 or, where the flag says so, bfloat16; x and y may be the same
extern "C" void normalize(const void* x, void* y, const float* weight, const float* bias, const float* tau, int maps,
                          int pixels, int channels, float eps, int from_half, int to_half) {
    (from_half ? (to_half ? respond_all<Half, Half> : respond_all<Half, float>)
               : (to_half ? respond_all<float, Half> : respond_all<float, float>))(
        x, y, weight, bias, tau, maps, pixels, channels, eps);
}
