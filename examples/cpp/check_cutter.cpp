// Cuts the patches of examples/test-vector and compares them with those that keypatch cut: check_cutter FOLDER
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <opencv2/imgcodecs.hpp>
#include <sstream>
#include <string>

#include "patches.hpp"

int main(int count, char** words) {
    if (count != 2) return std::fprintf(stderr, "usage: check_cutter FOLDER\n"), 2;
    const std::string folder = words[1];
    const cv::Mat image = cv::imread(folder + "/image.pgm", cv::IMREAD_UNCHANGED);
    const cv::Mat expected = cv::imread(folder + "/patches.pgm", cv::IMREAD_UNCHANGED);
    std::ifstream table(folder + "/keypoints.csv");
    if (image.empty() || expected.empty() || !table)
        return std::fprintf(stderr, "check_cutter: %s has no test vector.\n", folder.c_str()), 2;

    PatchCutter cutter(image);
    std::vector<std::uint8_t> patches;
    std::string line;
    std::getline(table, line);  // x,y,sigma,angle,s11,s12,s21,s22
    while (std::getline(table, line)) {
        std::replace(line.begin(), line.end(), ',', ' ');
        std::istringstream row(line);
        Keypoint k{};
        row >> k.x >> k.y >> k.sigma >> k.angle >> k.shape[0] >> k.shape[1] >> k.shape[2] >> k.shape[3];
        cutter.cut(k, 24.0, 32, patches);
    }
    if (patches.size() != expected.total())
        return std::fprintf(stderr, "check_cutter: %zu pixels instead of %zu.\n", patches.size(), expected.total()), 1;
    int largest = 0, different = 0;
    for (std::size_t i = 0; i < patches.size(); ++i) {
        const int difference = std::abs(patches[i] - expected.data[i]);
        largest = std::max(largest, difference);
        different += difference > 0;
    }
    std::printf("%zu patches: %d of %zu pixels differ, by at most %d grey values\n", patches.size() / 1024, different,
                patches.size(), largest);
    return largest > 1;  // a value half-way between two may be rounded either way
}
