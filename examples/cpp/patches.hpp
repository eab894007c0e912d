// The patch cutter of keypatch: keypoints of a grey photograph in, patches out (docs/conventions.md, "The cutter in full").
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <opencv2/imgproc.hpp>
#include <vector>

struct Keypoint {
    float x, y;                                         // pixels; the centre of the top-left pixel is (0, 0)
    float sigma;                                        // pixels
    float angle;                                        // radians, from the x axis towards the y axis
    std::array<float, 4> shape = {1, 0, 0, 1};          // s11, s12, s21, s22 of determinant 1
};

class PatchCutter {
public:
    explicit PatchCutter(const cv::Mat& grey) { levels_[0] = grey; }  // CV_8UC1

    // Appends the side x side grey values of the keypoint's patch to `out`, row by row, as numbers 0..255.
    template <typename Number>
    void cut(const Keypoint& keypoint, double patch_sigmas, int side, std::vector<Number>& out) {
        const double c = std::cos(keypoint.angle), s = std::sin(keypoint.angle);
        const auto& [s11, s12, s21, s22] = keypoint.shape;
        const double scale = keypoint.sigma * patch_sigmas / side;
        // columns: one patch pixel to the right, one down, in pixels of the photograph
        const double a = scale * (s11 * c + s12 * s), b = scale * (-s11 * s + s12 * c);
        const double d = scale * (s21 * c + s22 * s), e = scale * (-s21 * s + s22 * c);
        const double stretch = (std::hypot(a + e, d - b) + std::hypot(a - e, b + d)) / 2;  // larger singular value
        const cv::Mat& photo = levels_[0];
        const int coarsest = 2 * static_cast<int>(std::log2(std::max(photo.rows, photo.cols))) + 1;
        const int number = std::clamp(static_cast<int>(std::floor(2 * std::log2(stretch))), 0, coarsest);
        const cv::Mat& image = level(number);
        const double shrunk = std::ldexp(1.0, -(number / 2));  // halving keeps pixel 0 at 0
        const double middle = (side - 1) / 2.0;
        for (int j = 0; j < side; ++j)
            for (int i = 0; i < side; ++i) {
                const double u = keypoint.x + a * (i - middle) + b * (j - middle);
                const double v = keypoint.y + d * (i - middle) + e * (j - middle);
                out.push_back(static_cast<Number>(sample(image, u * shrunk, v * shrunk)));
            }
    }

private:
    // Image 2k is the photograph halved k times; image 2k + 1 has the same pixels, softened.
    const cv::Mat& level(int number) {
        if (!levels_.count(number)) {
            cv::Mat made;
            if (number % 2)
                cv::GaussianBlur(level(number - 1), made, {5, 5}, 0.65, 0.65, cv::BORDER_REPLICATE);
            else
                cv::pyrDown(level(number - 2), made, {}, cv::BORDER_REPLICATE);
            levels_[number] = made;
        }
        return levels_[number];
    }

    // Bilinear, rounded to a whole grey value; beyond the image its border is repeated. By hand, since warpAffine of
    // OpenCV 4 samples at steps of 1/32 pixel only.
    static int sample(const cv::Mat& image, double u, double v) {
        const double left = std::floor(u), top = std::floor(v), p = u - left, q = v - top;
        const auto column = [&](double at) { return static_cast<int>(std::clamp(at, 0.0, image.cols - 1.0)); };
        const auto row = [&](double at) { return image.ptr<std::uint8_t>(static_cast<int>(std::clamp(at, 0.0, image.rows - 1.0))); };
        const std::uint8_t *above = row(top), *below = row(top + 1);
        const int x0 = column(left), x1 = column(left + 1);
        const double value = (1 - q) * ((1 - p) * above[x0] + p * above[x1]) + q * ((1 - p) * below[x0] + p * below[x1]);
        return static_cast<int>(std::lrint(value));
    }

    std::map<int, cv::Mat> levels_;
};
