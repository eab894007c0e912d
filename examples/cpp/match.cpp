// Matches two photographs with a descriptor exported by keypatch: match MODEL.onnx FIRST SECOND [options]
//
// OpenCV's SIFT detects, PatchCutter cuts, onnxruntime describes; matches are mutual nearest neighbours that pass the
// ratio test from both sides. Prints one match per line: x1 y1 x2 y2 distance.
#include <onnxruntime_cxx_api.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <opencv2/core/version.hpp>
#include <opencv2/features2d.hpp>
#include <opencv2/imgcodecs.hpp>
#include <stdexcept>
#include <string>

#include "patches.hpp"

namespace {

struct Options {
    std::string model, first, second, folder;  // folder: where to write keypoints, descriptors and matches, if anywhere
    int keypoints = 2000;
    double ratio = 0.9;
};

struct Features {
    std::vector<Keypoint> keypoints;
    cv::Mat descriptors;  // (n, dim), float32, rows of unit length
};

struct Match {
    int first, second;
    float distance;
};

// Grey as Pillow (and so keypatch) makes it of colours; pixels as stored, not turned by EXIF.
cv::Mat read_grey(const std::string& path) {
    const cv::Mat stored = cv::imread(path, cv::IMREAD_COLOR | cv::IMREAD_IGNORE_ORIENTATION);
    if (stored.empty()) throw std::runtime_error(path + " cannot be read as an image.");
    cv::Mat grey(stored.size(), CV_8UC1);
    for (int y = 0; y < stored.rows; ++y)
        for (int x = 0; x < stored.cols; ++x) {
            const cv::Vec3b& bgr = stored.at<cv::Vec3b>(y, x);
            grey.at<std::uint8_t>(y, x) =
                static_cast<std::uint8_t>((19595 * bgr[2] + 38470 * bgr[1] + 7471 * bgr[0] + 32768) >> 16);
        }
    return grey;
}

// OpenCV's keypoints in our convention: sigma is half the size, the angle is in radians.
std::vector<Keypoint> detect(const cv::Mat& grey, int most) {
#if CV_VERSION_MAJOR > 4 || (CV_VERSION_MAJOR == 4 && CV_VERSION_MINOR >= 8)
    const auto sift = cv::SIFT::create(most, 3, 0.04, 10, 1.6, true);  // enable_precise_upscale
    const float shift = 0;
#else
    const auto sift = cv::SIFT::create(most);
    const float shift = 0.25f;  // OpenCV before 4.8 reports places a quarter of a pixel too far right and down
#endif
    std::vector<cv::KeyPoint> found;
    sift->detect(grey, found);
    std::vector<Keypoint> keypoints;
    for (const cv::KeyPoint& k : found)
        keypoints.push_back(
            {k.pt.x - shift, k.pt.y - shift, k.size / 2, static_cast<float>(k.angle * CV_PI / 180), {1, 0, 0, 1}});
    return keypoints;
}

class Describer {
public:
    explicit Describer(const std::string& path) : session_(environment_, path.c_str(), Ort::SessionOptions{}) {
        side_ = static_cast<int>(number("keypatch.patch_size"));
        patch_sigmas_ = number("keypatch.patch_sigmas");
    }

    Features describe(const cv::Mat& grey, std::vector<Keypoint> keypoints) {
        constexpr std::size_t at_once = 256;
        PatchCutter cutter(grey);
        cv::Mat descriptors;
        for (std::size_t start = 0; start < keypoints.size(); start += at_once) {
            const std::size_t stop = std::min(start + at_once, keypoints.size());
            std::vector<float> patches;  // grey values 0..255
            for (std::size_t i = start; i < stop; ++i) cutter.cut(keypoints[i], patch_sigmas_, side_, patches);
            descriptors.push_back(run(patches, static_cast<std::int64_t>(stop - start)));
        }
        return {std::move(keypoints), descriptors};
    }

private:
    cv::Mat run(std::vector<float>& patches, std::int64_t count) {
        const std::array<std::int64_t, 4> shape = {count, 1, side_, side_};
        const auto memory = Ort::MemoryInfo::CreateCpu(OrtArenaAllocator, OrtMemTypeDefault);
        const auto input =
            Ort::Value::CreateTensor<float>(memory, patches.data(), patches.size(), shape.data(), shape.size());
        const char *in = "patches", *out = "descriptors";
        auto outputs = session_.Run(Ort::RunOptions{}, &in, &input, 1, &out, 1);
        const auto dim = static_cast<int>(outputs[0].GetTensorTypeAndShapeInfo().GetShape()[1]);
        return cv::Mat(static_cast<int>(count), dim, CV_32F, outputs[0].GetTensorMutableData<float>()).clone();
    }

    double number(const char* name) {
        Ort::AllocatorWithDefaultOptions allocator;
        const auto text = session_.GetModelMetadata().LookupCustomMetadataMapAllocated(name, allocator);
        if (!text) throw std::runtime_error(std::string("The model has no entry ") + name + ". Was it exported by keypatch?");
        return std::stod(text.get());
    }

    Ort::Env environment_{ORT_LOGGING_LEVEL_WARNING, "match"};
    Ort::Session session_;
    int side_;
    double patch_sigmas_;
};

struct Nearest {
    int index = -1;
    float closest = -2, second = -2;  // cosines: unit vectors are the nearer the larger theirs

    void see(int candidate, float cosine) {
        if (cosine > closest) {
            second = closest;
            closest = cosine;
            index = candidate;
        } else if (cosine > second) {
            second = cosine;
        }
    }

    bool passes(double ratio) const {
        return index >= 0 && (ratio >= 1 || distance(closest) < ratio * distance(second));
    }

    static float distance(float cosine) { return std::sqrt(std::max(0.0f, 2 - 2 * cosine)); }
};

std::vector<Match> match(const cv::Mat& first, const cv::Mat& second, double ratio) {
    if (first.empty() || second.empty()) return {};
    const cv::Mat cosines = first * second.t();
    std::vector<Nearest> of_first(first.rows), of_second(second.rows);
    for (int i = 0; i < first.rows; ++i)
        for (int j = 0; j < second.rows; ++j) {
            of_first[i].see(j, cosines.at<float>(i, j));
            of_second[j].see(i, cosines.at<float>(i, j));
        }
    std::vector<Match> matches;
    for (int i = 0; i < first.rows; ++i) {
        const Nearest& there = of_first[i];
        if (there.passes(ratio) && of_second[there.index].index == i && of_second[there.index].passes(ratio))
            matches.push_back({i, there.index, Nearest::distance(there.closest)});
    }
    return matches;
}

// <name>.csv with the keypoints, <name>.f32 with the descriptors: float32, row after row, little-endian.
void write(const Features& features, const std::string& path) {
    std::FILE* table = std::fopen((path + ".csv").c_str(), "w");
    if (!table) throw std::runtime_error(path + ".csv cannot be written.");
    std::fprintf(table, "x,y,sigma,angle\n");
    for (const Keypoint& k : features.keypoints) std::fprintf(table, "%.9g,%.9g,%.9g,%.9g\n", k.x, k.y, k.sigma, k.angle);
    std::fclose(table);
    std::ofstream numbers(path + ".f32", std::ios::binary);
    numbers.write(reinterpret_cast<const char*>(features.descriptors.data),
                  static_cast<std::streamsize>(features.descriptors.total() * sizeof(float)));
}

void write(const std::vector<Match>& matches, const std::string& path) {
    std::ofstream table(path);
    table << "first,second\n";
    for (const Match& m : matches) table << m.first << ',' << m.second << '\n';
}

Options read(int count, char** words) {
    Options options;
    std::vector<std::string> places;
    for (int i = 1; i < count; ++i) {
        const std::string word = words[i];
        const bool more = i + 1 < count;
        if (word == "--keypoints" && more) options.keypoints = std::stoi(words[++i]);
        else if (word == "--ratio" && more) options.ratio = std::stod(words[++i]);
        else if (word == "--write" && more) options.folder = words[++i];
        else places.push_back(word);
    }
    if (places.size() != 3)
        throw std::invalid_argument("usage: match MODEL.onnx FIRST SECOND [--keypoints 2000] [--ratio 0.9] [--write FOLDER]");
    options.model = places[0], options.first = places[1], options.second = places[2];
    return options;
}

void run(const Options& options) {
    Describer describer(options.model);
    const cv::Mat images[] = {read_grey(options.first), read_grey(options.second)};
    Features features[2];
    for (int k = 0; k < 2; ++k) features[k] = describer.describe(images[k], detect(images[k], options.keypoints));
    const std::vector<Match> matches = match(features[0].descriptors, features[1].descriptors, options.ratio);
    for (const Match& m : matches) {
        const Keypoint &a = features[0].keypoints[m.first], &b = features[1].keypoints[m.second];
        std::printf("%.2f %.2f %.2f %.2f %.4f\n", a.x, a.y, b.x, b.y, m.distance);
    }
    std::cerr << features[0].keypoints.size() << " and " << features[1].keypoints.size() << " keypoints, "
              << matches.size() << " matches\n";
    if (!options.folder.empty()) {
        write(features[0], options.folder + "/first");
        write(features[1], options.folder + "/second");
        write(matches, options.folder + "/matches.csv");
    }
}

}  // namespace

int main(int count, char** words) {
    try {
        run(read(count, words));
    } catch (const std::exception& error) {
        std::cerr << "match: " << error.what() << '\n';
        return 2;
    }
}
