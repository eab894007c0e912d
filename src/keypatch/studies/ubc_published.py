"""What papers print for the six splits of PhotoTour."""

from dataclasses import dataclass

ADASAMPLE = "AdaSample, Table 1"
GOR = "GOR, Table 1"
HYNET = "HyNet, Table 1"
SDGMNET = "SDGMNet, Table I; our mean"


@dataclass(frozen=True)
class PublishedRow:
    """FPR95 in %: six values in the order of `SPLITS`, or one for each test set; the mean as printed."""

    method: str
    source: str
    values: tuple[float, ...]
    mean: float


# Figures that several papers print alike stand once. Each was reached under the conditions of its paper: HyNet's and
# SDGMNet's code keep the epoch that is best on the test sets, GOR's divides by the accepted pairs.
PUBLISHED_ROWS = (
    PublishedRow("SIFT", HYNET, (29.84, 22.53, 27.29), 26.55),
    PublishedRow("TFeat", HYNET, (7.39, 10.13, 3.06, 3.8, 8.06, 7.24), 6.64),
    PublishedRow("L2-Net", HYNET, (2.36, 4.7, 0.72, 1.29, 2.57, 1.71), 2.23),
    PublishedRow("HardNet", HYNET, (1.49, 2.51, 0.53, 0.78, 1.96, 1.84), 1.51),
    PublishedRow("DOAP", HYNET, (1.54, 2.62, 0.43, 0.87, 2.0, 1.21), 1.45),
    PublishedRow("SOSNet", HYNET, (1.08, 2.12, 0.35, 0.67, 1.03, 0.95), 1.03),
    PublishedRow("HyNet", HYNET, (0.89, 1.37, 0.34, 0.61, 0.88, 0.96), 0.84),
    PublishedRow("CDFDesc", SDGMNET, (1.21, 2.01, 0.39, 0.68, 1.51, 1.29), 1.18),
    PublishedRow("HN-FRN", SDGMNET, (1.26, 1.76, 0.41, 0.58, 1.16, 1.05), 1.04),
    PublishedRow("SDGMNet", SDGMNET, (0.88, 1.41, 0.34, 0.46, 0.82, 0.69), 0.77),
    PublishedRow("DeepDesc", ADASAMPLE, (10.9, 4.4, 5.69), 6.99),
    PublishedRow("GeoDesc", ADASAMPLE, (5.47, 1.94, 4.72), 4.05),
    PublishedRow("L2-Net", ADASAMPLE, (3.64, 5.29, 1.15, 1.62, 4.43, 3.3), 3.24),
    PublishedRow("CS-L2-Net", ADASAMPLE, (2.55, 4.24, 0.87, 1.39, 3.81, 2.84), 2.61),
    PublishedRow("HardNet", ADASAMPLE, (1.47, 2.67, 0.62, 0.88, 2.14, 1.65), 1.57),
    PublishedRow("HardNet-GOR", ADASAMPLE, (1.72, 2.89, 0.63, 0.91, 2.1, 1.59), 1.64),
    PublishedRow("HardNet*", ADASAMPLE, (1.8, 2.89, 0.68, 0.9, 1.93, 1.71), 1.65),
    PublishedRow("AdaSample*", ADASAMPLE, (1.64, 2.62, 0.61, 0.88, 1.92, 1.46), 1.52),
    PublishedRow("CS-L2-Net+", ADASAMPLE, (1.71, 3.87, 0.56, 1.09, 2.07, 1.3), 1.76),
    PublishedRow("HardNet-GOR+", ADASAMPLE, (1.48, 2.43, 0.51, 0.78, 1.76, 1.53), 1.41),
    PublishedRow("HardNet+*", ADASAMPLE, (1.35, 2.28, 0.43, 0.69, 1.64, 1.15), 1.26),
    PublishedRow("AdaSample+*", ADASAMPLE, (1.23, 2.19, 0.41, 0.62, 1.46, 1.05), 1.16),
    PublishedRow("VGG-Opt", GOR, (11.42, 14.58, 6.17, 7.22, 11.63, 10.08), 10.28),
    PublishedRow("DeepCompare_siam", GOR, (13.24, 17.25, 6.01, 8.38, 19.91, 15.89), 13.45),
    PublishedRow("DeepCompare_2str", GOR, (8.79, 12.84, 4.54, 5.58, 13.24, 13.02), 9.67),
    PublishedRow("DeepDesc", GOR, (8.82, 4.54, 16.19), 9.85),
    PublishedRow("CL+GOR", GOR, (6.46, 8.33, 3.4, 3.73, 6.99, 6.88), 5.97),
    PublishedRow("TGLoss", GOR, (9.91, 13.45, 3.91, 5.43, 10.65, 9.47), 8.8),
    PublishedRow("TFeat", GOR, (7.64, 9.88, 3.39, 3.83, 8.1, 7.95), 6.79),
    PublishedRow("TFeat+AS", GOR, (7.22, 9.79, 3.12, 3.85, 7.82, 7.08), 6.47),
    PublishedRow("TL+GOR", GOR, (5.47, 7.13, 2.28, 2.58, 5.74, 4.94), 4.69),
    PublishedRow("TL+AS+GOR", GOR, (4.8, 6.45, 1.95, 2.38, 5.4, 5.15), 4.36),
    PublishedRow("N-pair", GOR, (4.8, 7.51, 2.6, 3.01, 8.29, 5.53), 5.29),
    PublishedRow("N-pair+GOR", GOR, (5.03, 7.1, 2.34, 2.81, 7.43, 5.16), 4.98),
)
