"""Reports of a result: a CSV file and an HTML file.

The CSV file has a line for each sample; the HTML file needs no other file.
"""

from .csv import csv_report
from .html import html_report

__all__ = ["csv_report", "html_report"]
