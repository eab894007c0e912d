"""Models of two views by OpenCV's MAGSAC."""

import cv2

from keypatch.matching.estimating import Answer, Points, Task


def estimate_by_magsac(first: Points, second: Points, task: Task) -> Answer:
    parameters = cv2.UsacParams()  # those that cv2.USAC_MAGSAC stands for, and a seed
    parameters.score = cv2.SCORE_METHOD_MAGSAC
    parameters.loMethod = cv2.LOCAL_OPTIM_SIGMA
    parameters.loSampleSize, parameters.loIterations = (75, 15) if task.model == "H" else (50, 10)
    parameters.threshold, parameters.confidence = task.threshold, task.confidence
    parameters.maxIterations, parameters.randomGeneratorState = task.iterations, task.seed
    try:
        if task.model == "H":
            return cv2.findHomography(first, second, params=parameters)
        if task.cameras is None:
            return cv2.findFundamentalMat(first, second, params=parameters)
        return cv2.findEssentialMat(first, second, *task.cameras, None, None, params=parameters)
    except cv2.error:  # points in a degenerate position
        return None, None
