"""Networks that find objects in images."""

from nn_core.models.object_detection.utils import LetterBoxTransform as LetterBoxTransform
from nn_core.models.object_detection.utils import draw_bounding_boxes as draw_bounding_boxes
from nn_core.models.object_detection.utils import letterbox as letterbox
from nn_core.models.object_detection.yolov2 import YoloV2 as YoloV2
