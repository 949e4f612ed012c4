"""From images to logits: any timm model, in shards that `acumen report` reads.

Needs the extra ``vision``; nothing of it is loaded before it is used.
"""

from acumen.vision.images import Images, Item
from acumen.vision.inference import Run, infer
from acumen.vision.models import Model, load_model
from acumen.vision.opening import open_images

__all__ = ["Images", "Item", "Model", "Run", "infer", "load_model", "open_images"]
