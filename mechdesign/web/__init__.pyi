from .client import write_client as write_client
from .designer import save_designer as save_designer
from .page import save_page as save_page
