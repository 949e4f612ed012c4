"""From images to logits: any timm model, in shards that `calibrant report` reads.

Needs the extra ``vision``; nothing of it is loaded before it is used.
"""

from calibrant.vision._images import Images, Item, open_images
from calibrant.vision._inference import Run, infer
from calibrant.vision._models import Model, load_model

__all__ = ["Images", "Item", "Model", "Run", "infer", "load_model", "open_images"]
