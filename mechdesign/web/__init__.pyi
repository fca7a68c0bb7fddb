from .client import write_client as write_client
from .page import save_page as save_page
